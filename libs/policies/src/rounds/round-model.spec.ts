import { TAIL_POLICIES, type TailPolicy } from '@broomwagon/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findPolicyFault } from '../tail';
import { planRound } from './plan-round';
import { RoundModel } from './round-model';
import type { ModelGroup, ModelRequest, ModelSegment } from './round-model.types';

/** Data sets per property; `MODEL_RUNS=5000` looks deeper. */
const RUNS = Number(process.env.MODEL_RUNS ?? 100);

const anyPolicy: fc.Arbitrary<TailPolicy> = fc
  .record(
    {
      name: fc.constantFrom(...TAIL_POLICIES),
      overProvision: fc.constantFrom(1, 1.25, 1.5, 2),
      overProvisionMode: fc.constantFrom('fixed', 'adaptive'),
      sampleOverProvision: fc.constantFrom(1, 1.5, 2),
      onCut: fc.constantFrom('keep', 'discard'),
      dripGroups: fc.constantFrom(1, 2),
      dripMode: fc.constantFrom('fixed', 'adaptive'),
      concurrency: fc.constantFrom(1, 3, 8),
      domainQuotas: fc.constantFrom({ d0: 1 }, { d0: 1, d1: 1 }),
      maxCuts: fc.constantFrom(1, 2),
      maxAgeSteps: fc.constantFrom(1, 2, 3),
      maxVersionSpan: fc.constantFrom(1, 2),
      maxOffPolicyShare: fc.constantFrom(0.1, 0.3),
      maxLongtailShare: fc.constantFrom(0.3, 0.5),
      shortfall: fc.constant('accept-fewer'),
      maxFailures: fc.constantFrom(0, 1),
      maxReturns: fc.constantFrom(0, 2, 1_000),
    },
    { requiredKeys: ['name', 'overProvision'] },
  )
  .map((policy) => ({
    ...policy,
    shortfall: 'accept-fewer' as const,
    concurrency: policy.name === 'fixed-concurrency' ? (policy.concurrency ?? 4) : undefined,
  })) as fc.Arbitrary<TailPolicy>;

interface Setting {
  groups: number;
  samples: number;
  groupsPerStep: number;
  policy: TailPolicy;
  /** Share of messages that are failures, of 8. */
  failures: number;
  drops: number;
}

/** Workers that do anything in any order, and a trainer that checks every batch. */
class World {
  readonly model = new RoundModel();
  readonly trained = new Set<ModelGroup>();
  readonly all: ModelGroup[] = [];
  private readonly held: ModelRequest[] = [];
  private submitted = 0;
  private nowMs = 0;
  steps = 0;

  constructor(
    readonly setting: Setting,
    private readonly decide: (choices: number) => number,
  ) {}

  run(): void {
    for (let turn = 0; turn < 100_000; turn++) {
      this.nowMs += this.decide(50);
      this.auditRound();
      if (this.model.round === undefined || this.model.round.state === 'closed') {
        if (!this.open()) return;
      } else if (this.model.round.state === 'completed' && this.decide(2) === 0) {
        this.close();
      } else {
        this.work();
      }
    }
    throw new Error('The data set has no end');
  }

  private open(): boolean {
    const { groups, groupsPerStep, policy } = this.setting;
    this.model.cut();
    const remainingGroups = groups - this.submitted;
    const domains = Array.from({ length: remainingGroups }, (_, offset) => domainOf(this.submitted + offset));
    const remainingByDomain: Record<string, number> = {};
    for (const domain of domains) remainingByDomain[domain] = (remainingByDomain[domain] ?? 0) + 1;
    const snapshot = this.model.snapshot();
    const plan = planRound(snapshot, { groupsPerStep, remainingGroups, remainingByDomain, policy });
    if (plan.kind === 'done') return false;
    const untrained = remainingGroups + snapshot.longtailGroups + snapshot.settlingGroups;
    expect(plan.neededGroups).toBe(Math.min(groupsPerStep, untrained));
    expect(plan.newGroups + plan.takeGroups).toBeGreaterThanOrEqual(plan.neededGroups);
    expect(plan.newGroups).toBeLessThanOrEqual(remainingGroups);
    if (remainingGroups >= plan.neededGroups && policy.maxLongtailShare !== undefined) {
      expect(plan.takeGroups).toBeLessThanOrEqual(policy.maxLongtailShare * plan.neededGroups);
    }
    const opened = this.model.open({ ...plan, kind: plan.kind, policy, weightVersion: plan.step - 1 }, this.nowMs);
    if (opened === 'ROUND_SETTLING') {
      this.work();
      return true;
    }
    expect(['open', 'completed']).toContain(opened);
    const round = this.model.round!;
    if (policy.maxLongtailShare === undefined && this.model.longtail.pinnedGroups(plan.step) > 0) {
      expect(round.reserved + round.accepted.length, 'a pinned group waits').toBe(round.neededGroups);
    }
    const fresh = Array.from({ length: plan.newGroups }, (_, offset) => ({
      groupId: `g${this.submitted + offset}`,
      samples: this.setting.samples,
      domain: domainOf(this.submitted + offset),
    }));
    this.submitted += fresh.length;
    if (fresh.length > 0) this.all.push(...this.model.submit(fresh, this.nowMs));
    return true;
  }

  private work(): void {
    const { model, decide } = this;
    const holder = decide(3);
    switch (decide(8)) {
      case 0:
      case 1:
        this.held.push(...model.claim(1 + decide(6), holder));
        return;
      case 2:
        for (const { request, attempt } of model.cut()) {
          if (decide(2) === 0) model.fail(request, attempt, { segment: this.segment(request) }, this.nowMs);
        }
        return;
      case 3:
        if (decide(8) === 0) model.expiredHolder(holder, this.nowMs);
        else if (decide(40) < this.setting.drops && this.all.length > 0) {
          model.dropGroup(this.all[decide(this.all.length)]!, this.nowMs);
        } else model.fold();
        return;
      case 4:
        this.withRequest((request) => model.checkpoint(request, request.attempt, this.segment(request)));
        return;
      default:
        this.withRequest((request) => this.end(request));
    }
  }

  private end(request: ModelRequest): void {
    const { attempt } = request;
    const segment = this.segment(request);
    if (this.decide(8) < this.setting.failures) {
      this.model.fail(request, attempt, { segment, countsAsFailure: this.decide(2) === 0 }, this.nowMs);
    } else {
      this.model.complete(request, attempt, segment, this.nowMs);
      expect(this.model.fail(request, attempt - 1, {}, this.nowMs).state).toBe('FENCED');
    }
  }

  private withRequest(act: (request: ModelRequest) => void): void {
    const position = this.decide(Math.max(1, this.held.length));
    const request = this.held[position];
    if (request === undefined) return;
    act(request);
    if (!['claimed', 'running', 'cutting'].includes(request.state)) this.held.splice(position, 1);
  }

  private segment(request: ModelRequest): ModelSegment {
    const tokens = (request.checkpoint?.tokens ?? 0) + this.decide(40);
    return { attempt: request.attempt, weightVersion: request.group.round.weightVersion, tokens };
  }

  private close(): void {
    const round = this.model.round!;
    const { policy, samples } = this.setting;
    for (const group of round.accepted) {
      expect(this.trained.has(group), 'trained twice').toBe(false);
      this.trained.add(group);
      const finished = group.requests.filter(({ state }) => state === 'finished');
      expect(finished.length).toBe(samples);
      for (const { segments, tokens } of finished) {
        expect(segments.reduce((sum, segment) => sum + segment.tokens, 0)).toBe(tokens);
        const versions = segments.map(({ weightVersion }) => weightVersion);
        if (policy.maxVersionSpan !== undefined && versions.length > 0) {
          expect(round.weightVersion - Math.min(...versions)).toBeLessThanOrEqual(policy.maxVersionSpan);
        }
      }
    }
    if (policy.maxCuts !== undefined) {
      for (const { cuts } of round.accepted) expect(cuts).toBeLessThanOrEqual(policy.maxCuts);
    }
    this.model.close();
    this.steps += 1;
  }

  private auditRound(): void {
    const { requestCounts } = this.model;
    const { submitted, ...states } = requestCounts;
    expect(Object.values(states).reduce((sum, count) => sum + count, 0)).toBe(submitted);
    const { round } = this.model;
    if (round === undefined || round.state !== 'open') return;
    expect(round.reserved + round.accepted.length).toBeLessThanOrEqual(round.neededGroups);
    expect(round.accepted.length).toBeLessThan(round.neededGroups);
    if (round.rules.concurrency > 0) expect(round.inFlight).toBeLessThanOrEqual(round.rules.concurrency);
    if (round.places !== undefined) {
      const places = [...round.places.values()].reduce((sum, count) => sum + count, round.spare);
      expect(places).toBe(round.neededGroups - round.accepted.length - round.reserved);
    }
    const live = [...round.live];
    expect(live.filter(({ pinned }) => pinned).length).toBe(round.reserved);
    expect(new Set(live.filter(({ held }) => held))).toEqual(round.held);
  }
}

function planOf(model: RoundModel, policy: TailPolicy, remainingGroups: number) {
  return planRound(model.snapshot(), { groupsPerStep: 2, remainingGroups, policy }) as ReturnType<typeof planRound> & {
    kind: 'short';
  };
}

function domainOf(position: number): string {
  return `d${position % 3}`;
}

function runs(check: (world: World) => void, failures: number, drops: number): void {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 24 }),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 2, max: 6 }),
      anyPolicy,
      fc.infiniteStream(fc.nat()),
      (groups, samples, groupsPerStep, drawn, stream) => {
        // Workers come and go in all runs.
        const policy = failures > 0 ? drawn : { ...drawn, maxReturns: undefined };
        fc.pre(findPolicyFault(policy, groupsPerStep) === undefined);
        const decide = (choices: number): number => (stream.next().value as number) % choices;
        const world = new World({ groups, samples, groupsPerStep, policy, failures, drops }, decide);
        world.run();
        check(world);
      },
    ),
    { numRuns: RUNS },
  );
}

describe('the model of rounds, under every policy and bound, with workers that do anything in any order', () => {
  it('trains every group exactly once, whole, within its bounds, in exactly ceil(N / G) steps', () => {
    runs(
      ({ setting, trained, steps, model }) => {
        expect(trained.size).toBe(setting.groups);
        expect(steps).toBe(Math.ceil(setting.groups / setting.groupsPerStep));
        expect(model.longtail.size).toBe(0);
        expect(model.groups.settling).toBe(0);
      },
      0,
      0,
    );
  });

  it('ends every group exactly once, trained, failed or dropped, when requests fail and groups are dropped', () => {
    runs(
      ({ setting, trained, model }) => {
        expect(trained.size).toBe(model.groups.trained);
        expect(model.groups.trained + model.groups.failed + model.groups.dropped).toBe(setting.groups);
        expect(model.longtail.size).toBe(0);
        expect(model.groups.settling).toBe(0);
      },
      2,
      10,
    );
  });

  it('takes a group that was cut maxCuts times next, keeps a place for it, and waits for it', () => {
    const model = new RoundModel();
    const policy: TailPolicy = { name: 'drip', overProvision: 1.5, dripGroups: 1, maxCuts: 1 };
    model.open({ ...planOf(model, policy, 6), policy, weightVersion: 0 }, 0);
    model.submit(
      [1, 2, 3].map((n) => ({ groupId: `g${n}`, samples: 1 })),
      0,
    );
    const [slow, ...others] = model.claim(3, 'w');
    model.checkpoint(slow!, 1, { attempt: 1, weightVersion: 0, tokens: 5 });
    for (const request of others) model.complete(request, 1, { attempt: 1, weightVersion: 0, tokens: 3 }, 1);
    expect(model.round!.state).toBe('completed');
    for (const { request, attempt } of model.cut()) model.fail(request, attempt, {}, 2);
    expect(slow!.group).toMatchObject({ state: 'unfinished', cuts: 1, pinStep: 2, tokens: 5 });
    model.close();

    model.open({ ...planOf(model, policy, 3), policy, weightVersion: 1 }, 3);
    expect(model.round).toMatchObject({ takenGroups: 1, reserved: 1 });
    model.submit(
      [4, 5].map((n) => ({ groupId: `g${n}`, samples: 1 })),
      3,
    );
    const [again, ...fresh] = model.claim(3, 'w');
    expect(again).toBe(slow);
    for (const request of fresh) model.complete(request, 1, undefined, 4);
    // One of the new groups has the other place, the second is held.
    expect(model.round).toMatchObject({ state: 'open', held: new Set([fresh[1]!.group]) });
    model.complete(again!, 2, { attempt: 2, weightVersion: 1, tokens: 2 }, 5);
    expect(model.round!.state).toBe('completed');
    expect(model.round!.accepted).toEqual([fresh[0]!.group, slow!.group]);
    expect(slow!.segments.map(({ tokens }) => tokens)).toEqual([5, 2]);
    model.cut();
    expect(model.longtail).toMatchObject({ size: 1, finishedGroups: 1 });
  });

  it('drives hundreds of thousands of requests in seconds', () => {
    const model = new RoundModel();
    const policy: TailPolicy = { name: 'resume', overProvision: 1.25, sampleOverProvision: 1.25, maxCuts: 3 };
    const groupsPerStep = 2_048;
    let submitted = 0;
    const startedMs = performance.now();
    for (let step = 0; step < 8; step++) {
      const plan = planRound(model.snapshot(), { groupsPerStep, remainingGroups: 1_000_000, policy });
      model.open({ ...plan, kind: plan.kind as 'short', policy, weightVersion: plan.step }, plan.step);
      model.submit(
        Array.from({ length: plan.newGroups }, () => ({ groupId: `g${submitted++}`, samples: 16 })),
        plan.step,
      );
      while (model.round!.state === 'open') {
        for (const request of model.claim(64, 'w')) {
          const segment = { attempt: request.attempt, weightVersion: plan.step, tokens: 7 };
          model.checkpoint(request, request.attempt, segment);
          if (request.index % 7 !== 6) model.complete(request, request.attempt, segment, plan.step);
        }
        for (const request of model.held('w')) model.complete(request, request.attempt, undefined, plan.step);
      }
      for (const { request, attempt } of model.cut()) model.fail(request, attempt, {}, plan.step);
      model.close();
      model.fold();
    }
    expect(model.requestCounts.submitted).toBeGreaterThan(300_000);
    expect(performance.now() - startedMs).toBeLessThan(10_000);
  });
});
