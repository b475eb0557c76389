import {
  BroomwagonError,
  type GroupResult,
  type GroupSubmission,
  type OpenRoundRequest,
  type OperationName,
  type ReconcileJobRequest,
  type RoundStatus,
} from '@broomwagon/contracts';
import type { TypedClient } from '@broomwagon/messaging';

interface FakeRound extends Pick<
  OpenRoundRequest,
  'roundId' | 'step' | 'kind' | 'neededGroups' | 'newGroups' | 'policy'
> {
  taken: string[];
  submitted: string[];
  accepted: string[];
  failed: string[];
  closed: boolean;
}

/**
 * A coordinator in memory for tests of the trainer: a group is accepted at each read of the status of an open round.
 */
export class FakeCoordinator {
  groups = new Map<string, GroupSubmission>();
  trained: string[] = [];
  readonly calls: OperationName[] = [];
  readonly payloads = new Map<string, Buffer[]>();
  readonly payloadNames = new Set<string>();
  readonly weightVersions: (number | undefined)[] = [];
  /** Groups that fail instead of being accepted. */
  readonly failing = new Set<string>();
  /** Number of accepted groups that are counted, but missing. */
  countedTooMany = 0;
  /** Groups whose tokens the payload store loses once they are accepted, until the groups are dropped. */
  readonly losing = new Set<string>();
  /** Groups whose prompts the payload store loses once they are submitted. */
  readonly losingPrompts = new Set<string>();
  private cancelled = new Set<string>();
  private longtail: string[] = [];
  private generation = 1;
  private round?: FakeRound;
  private closed?: FakeRound;
  private takeovers = 0;
  private trainerEpoch = 'e0';
  private steps = 0;
  private known = false;
  /** Committed version, and the change that is under way. */
  weights: { version?: number; sync?: { syncId: string; version: number } } = {};
  /** Changes that began before the end of another one. A real coordinator refuses them until the deadline of that one. */
  weightConflicts = 0;
  /** Called before each operation; an error that it throws is the answer. */
  before: (operation: OperationName) => void = () => undefined;
  /** Called when an operation has had its effect; an error that it throws replaces the answer. */
  after: (operation: OperationName) => void = () => undefined;

  /** The client of the trainer. */
  get client(): TypedClient {
    const callWithRetry = async (_pool: string, operation: OperationName, body: never): Promise<unknown> => {
      this.before(operation);
      this.calls.push(operation);
      const answer = structuredClone(this.answer(operation, body));
      this.after(operation);
      return answer;
    };
    return { callWithRetry } as unknown as TypedClient;
  }

  /** Saves the state. @returns function that sets the coordinator back to this state */
  saved(): () => void {
    const { groups, trained, longtail, cancelled, round, closed, trainerEpoch, steps, known, weights } = this;
    const jobState = { groups, trained, longtail, cancelled, round, closed, trainerEpoch, steps, known };
    const state = structuredClone({ weights, ...jobState });
    return () => {
      Object.assign(this, structuredClone(state));
      this.generation += 1;
    };
  }

  private answer(operation: OperationName, body: Record<string, never>): unknown {
    const stamp = `${this.generation}.0`;
    if (body['stamp'] !== undefined && body['stamp'] !== stamp) {
      throw new BroomwagonError('GENERATION_CHANGED', 'set back');
    }
    return { ...(this.dispatch(operation, body) as object), stamp };
  }

  private dispatch(operation: OperationName, body: Record<string, never>): unknown {
    if ('trainerEpoch' in body && body.trainerEpoch !== undefined && body.trainerEpoch !== this.trainerEpoch) {
      throw new BroomwagonError('FENCED', 'another trainer took over');
    }
    const isOfRound = ['round.submit', 'round.results', 'round.close'].includes(operation);
    if (isOfRound && this.cancelled.has(body['roundId'] ?? ''))
      throw new BroomwagonError('ROUND_CANCELLED', 'given up');
    switch (operation) {
      case 'job.status':
        if (!this.known) throw new BroomwagonError('JOB_NOT_FOUND', 'no such job');
        return { submittedGroups: this.groups.size, requests: { submitted: 0, trained: 0, failed: 0, dropped: 0 } };
      case 'round.takeover':
        if (!this.known) {
          const details = { stamp: `${this.generation}.0` };
          throw new BroomwagonError('JOB_NOT_FOUND', 'no such job', { details });
        }
        this.trainerEpoch = `e${++this.takeovers}`;
        return {
          trainerEpoch: this.trainerEpoch,
          stepsTrained: this.steps,
          submittedGroups: this.groups.size,
          round: this.round === undefined ? undefined : this.status(this.round),
        };
      case 'round.next':
        return this.plan(body as never);
      case 'round.open':
        return this.open(body as never);
      case 'round.submit':
        return this.submit((body as unknown as { groups: GroupSubmission[] }).groups);
      case 'round.status':
        return this.look();
      case 'round.results':
        return this.results((body as unknown as { cursor?: string }).cursor);
      case 'round.close':
        return this.close();
      case 'job.reconcile':
        return this.reconcile(body as unknown as ReconcileJobRequest);
      case 'round.cancel':
        return this.cancel();
      case 'longtail.drop':
        return this.drop((body as unknown as { groupIds: string[] }).groupIds);
      case 'weights.begin':
        return this.beginWeights(body as unknown as { syncId: string; version: number });
      case 'weights.commit':
        this.weights = { version: this.weights.sync?.version ?? this.weights.version };
        return {};
      case 'weights.status':
        return this.weights;
      case 'group.list':
        return { groups: this.current().failed.map((groupId) => this.lost(groupId)) };
      case 'payload.put':
        return this.put(body as never);
      case 'payload.get':
        if (this.losing.has((body as unknown as { ref: string }).ref)) {
          throw new BroomwagonError('PAYLOAD_NOT_FOUND', 'lost');
        }
        return { data: Buffer.from('{"text":"t","tokenIds":[7]}').toString('base64'), chunkIndex: 0, chunkCount: 1 };
      default:
        throw new BroomwagonError('NOT_FOUND_SUBJECT', operation);
    }
  }

  private beginWeights({ syncId, version }: { syncId: string; version: number }): object {
    const { sync } = this.weights;
    if (sync !== undefined && sync.syncId !== syncId) this.weightConflicts += 1;
    this.weights = Object.assign({}, this.weights, { sync: { syncId, version } });
    return {};
  }

  private plan(wanted: { groupsPerStep: number; remainingGroups: number; policy: { overProvision: number } }): unknown {
    const left = this.longtail.length + wanted.remainingGroups;
    const step = this.steps + 1;
    if (left === 0) return { planId: 'done', step, kind: 'done', neededGroups: 0, newGroups: 0, takeGroups: 0 };
    const neededGroups = Math.min(wanted.groupsPerStep, left);
    const long = this.longtail.length >= wanted.groupsPerStep || wanted.remainingGroups === 0;
    const launch = Math.min(left, Math.ceil(wanted.policy.overProvision * neededGroups));
    const newGroups = long ? 0 : Math.min(wanted.remainingGroups, launch);
    const takeGroups = long ? neededGroups : Math.max(0, neededGroups - newGroups);
    return { planId: `plan-${step}`, step, kind: long ? 'long' : 'short', neededGroups, newGroups, takeGroups };
  }

  private open(wanted: OpenRoundRequest): unknown {
    if (this.cancelled.has(wanted.roundId)) throw new BroomwagonError('ROUND_CANCELLED', 'given up');
    this.known = true;
    const taken = this.longtail.splice(0, wanted.takeGroups);
    this.round = { ...wanted, taken, submitted: [], accepted: [], failed: [], closed: false };
    this.weightVersions.push(wanted.weightVersion);
    return { roundId: wanted.roundId, trainerEpoch: this.trainerEpoch, state: 'open', takenGroups: taken.length };
  }

  private submit(groups: readonly GroupSubmission[]): unknown {
    const round = this.current();
    if (this.completed(round)) throw new BroomwagonError('ROUND_NOT_OPEN', 'completed');
    const added = groups.filter(({ groupId }) => !round.submitted.includes(groupId));
    for (const group of added) {
      if (this.groups.has(group.groupId)) throw new BroomwagonError('DUPLICATE_GROUP', group.groupId);
      this.groups.set(group.groupId, group);
      round.submitted.push(group.groupId);
    }
    return { roundGroups: round.submitted.length, added: added.length, repeated: groups.length - added.length };
  }

  private look(): RoundStatus {
    const round = this.current();
    const waiting = this.live(round)[0];
    if (!this.completed(round) && waiting !== undefined && round !== this.closed) {
      const fails = this.failing.has(waiting) || this.losingPrompts.has(waiting);
      (fails ? round.failed : round.accepted).push(waiting);
    }
    return this.status(round);
  }

  private status(round: FakeRound): RoundStatus {
    const { taken, submitted, accepted, neededGroups } = round;
    const roundGroups = taken.length + submitted.length;
    return {
      ...round,
      state: this.cancelled.has(round.roundId) ? 'cancelled' : this.completed(round) ? 'completed' : 'open',
      weightVersion: round.step - 1,
      trainerEpoch: this.trainerEpoch,
      takenGroups: taken.length,
      roundGroups,
      acceptedGroups: accepted.length,
      excludedGroups: 0,
      replacedGroups: 0,
      failedGroups: round.failed.length,
      droppedGroups: 0,
      shortfallGroups: this.completed(round) ? 0 : Math.max(0, neededGroups - roundGroups + round.failed.length),
      requestsDone: accepted.length,
      requestsCut: roundGroups - accepted.length,
      groupsRequeued: roundGroups - accepted.length,
      pinnedGroups: 0,
      heldGroups: 0,
      wastedTokens: 0,
      wastedByReason: {},
      returnedAttempts: {},
      settled: true,
      openedAtMs: 0,
    };
  }

  private results(after?: string): unknown {
    const round = this.current();
    const cursor = Number(after?.split('.')[1] ?? 0);
    const groups = round.accepted.slice(cursor, cursor + 2).map((groupId): Partial<GroupResult> => ({
      groupId,
      digest: `d-${groupId}`,
      samples: Array.from({ length: this.groups.get(groupId)!.samples }, (_, sampleIndex) => ({
        requestId: `${groupId}/${sampleIndex}`,
        sampleIndex,
        finishReason: 'stop',
        tokenCount: 1,
        segments: [{ attempt: '1-a', serverId: 's', serverEpoch: 'e1', weightVersion: 0, tokenCount: 1, ref: groupId }],
      })),
    }));
    const next = cursor + groups.length;
    return {
      state: 'open',
      groups,
      cursor: `a.${next}.0.a.`,
      complete: this.completed(round) && next === round.accepted.length + this.countedTooMany,
    };
  }

  /** Cancels the round, for a trainer or an operator. */
  cancel(): unknown {
    const round = this.current();
    this.cancelled.add(round.roundId);
    this.longtail.unshift(...round.accepted, ...this.live(round));
    this.closed = round;
    this.round = undefined;
    return { roundId: round.roundId, state: 'cancelled', mode: 'requeue', groups: 0 };
  }

  private drop(groupIds: readonly string[]): unknown {
    const dropped = groupIds.filter((groupId) => this.longtail.includes(groupId));
    this.longtail = this.longtail.filter((groupId) => !dropped.includes(groupId));
    for (const groupId of dropped) {
      this.groups.delete(groupId);
      this.losing.delete(groupId);
    }
    return { dropped, notQueued: [], requests: 0, tokens: 0 };
  }

  private close(): unknown {
    const round = this.current();
    this.trained.push(...round.accepted);
    this.longtail.push(...this.live(round));
    for (const groupId of round.failed) {
      this.groups.delete(groupId);
      this.losingPrompts.delete(groupId);
    }
    this.steps += 1;
    this.closed = round;
    this.round = undefined;
    return { roundId: round.roundId, stepsTrained: this.steps, trainedGroups: 0, trainedRequests: 0 };
  }

  private reconcile({ trainerEpoch, step, groups = [], isLast, groupIds = [] }: ReconcileJobRequest): unknown {
    if (this.known && trainerEpoch === undefined) throw new BroomwagonError('FENCED', 'another trainer took over');
    this.known = true;
    if (this.trainerEpoch === 'e0' && trainerEpoch === undefined) this.trainerEpoch = `e${++this.takeovers}`;
    if (step !== undefined && this.round !== undefined && this.round.step <= step) {
      this.longtail.push(...this.round.accepted, ...this.live(this.round));
      this.round = undefined;
    }
    for (const { groupId, samples } of groups) {
      this.longtail = this.longtail.filter((one) => one !== groupId);
      if (!this.groups.has(groupId)) this.groups.set(groupId, { groupId, samples, maxTokens: 1 });
      if (!this.trained.includes(groupId)) this.trained.push(groupId);
    }
    if (isLast) this.steps = Math.max(this.steps, step!);
    return {
      trainerEpoch: this.trainerEpoch,
      stepsTrained: this.steps,
      submittedGroups: this.groups.size,
      openRoundId: this.round?.roundId,
      countedGroups: groups.length,
      unknown: groupIds.filter((groupId) => !this.groups.has(groupId)),
    };
  }

  private lost(groupId: string) {
    const reason = this.losingPrompts.has(groupId) ? 'payload' : 'engine-rejected';
    return { groupId, state: 'failed', reason, requestId: `${groupId}/0` };
  }

  private put(chunk: { groupId: string; name: string; chunkIndex: number; chunkCount: number; data: string }): unknown {
    this.payloadNames.add(chunk.name);
    const chunks = this.payloads.get(chunk.groupId) ?? [];
    chunks[chunk.chunkIndex] = Buffer.from(chunk.data, 'base64');
    this.payloads.set(chunk.groupId, chunks);
    const whole = chunks.filter(Boolean).length === chunk.chunkCount;
    return { receivedChunks: chunks.length, ...(whole ? { ref: `ref:${chunk.groupId}` } : {}) };
  }

  private current(): FakeRound {
    const round = this.round ?? this.closed;
    if (round === undefined) throw new BroomwagonError('ROUND_NOT_FOUND', 'no round');
    return round;
  }

  private completed(round: FakeRound): boolean {
    const gone = round.policy.shortfall === 'accept-fewer' && this.live(round).length === 0;
    const allThere = round.submitted.length >= round.newGroups;
    return round.accepted.length >= round.neededGroups || (gone && allThere);
  }

  private live({ taken, submitted, accepted, failed }: FakeRound): string[] {
    return [...taken, ...submitted].filter((id) => !accepted.includes(id) && !failed.includes(id));
  }
}
