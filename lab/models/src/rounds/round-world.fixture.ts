import { interleave } from './interleave.fixture';
import { type GivenAttempt, isForgotten, formatAttemptName, listAttemptNames, WORKERS } from './round-follower.fixture';
import type { ModelAbort, ModelSegment } from './round-model.types';
import { TrainerWorld } from './trainer-world.fixture';

const ACTS = {
  train: 20,
  claim: 28,
  save: 14,
  complete: 28,
  fail: 14,
  cut: 14,
  expireWorker: 2,
  fold: 4,
  reward: 10,
  dropGroup: 1,
  stopSample: 2,
  move: 4,
  expireMoves: 1,
  changeWeights: 1,
  expireRound: 2,
  reconcile: 1,
  requeue: 3,
  snapshot: 10,
  restore: 8,
};
export type RoundAct = keyof typeof ACTS;

/**
 * Workers that do anything in any order, and a trainer that checks every batch, on the model of rounds. With a
 * follower, every act is also applied there, and both must agree on every answer.
 */
export class RoundWorld extends TrainerWorld {
  requeues = 0;
  /** Number of moves of requests that workers had. */
  moves = 0;
  /** Number of weight changes while workers had requests. */
  weightChanges = 0;
  /** Number of messages with several finished samples. */
  gathered = 0;

  /** Runs the data set to its end, without the acts named in `without`. */
  run(without: readonly RoundAct[] = []): Promise<void> {
    const names = (Object.keys(ACTS) as RoundAct[]).filter((name) => !without.includes(name));
    const acts = names.map((name) => ({ weight: ACTS[name], act: () => this[name]() }));
    return interleave(this.decide, acts, () => this.check());
  }

  /** Runs only these acts, in this order. */
  async act(names: readonly RoundAct[]): Promise<void> {
    for (const name of names) {
      await this[name]();
      await this.check();
    }
  }

  private async claim(): Promise<void> {
    const workerId = this.pick(WORKERS)!;
    const max = 1 + this.decide(6);
    const said = await this.follower?.claim(max, workerId);
    const claims = this.model.claim(max, workerId);
    this.same(
      said,
      claims.map((request) => formatAttemptName(request, request.attempt)),
    );
    this.given.push(...claims.map((request) => ({ request, number: request.attempt, workerId })));
  }

  private async save(): Promise<void> {
    const attempt = this.anAttempt();
    if (attempt === undefined) return;
    const made = this.segment(attempt);
    const said = await this.follower?.save(attempt, made);
    this.same(said, this.model.save(attempt.request, attempt.number, made));
  }

  /** A worker reports finished samples by one message, which may name a sample twice. */
  private async complete(): Promise<void> {
    const first = this.anAttempt();
    if (first === undefined) return;
    const attempts = [first];
    for (let more = this.decide(4); more > 0; more--) {
      const other = this.anAttempt();
      if (other?.workerId === first.workerId) attempts.push(other);
    }
    const made = attempts.map((attempt) => this.segment(attempt));
    const said = await this.follower?.complete(attempts, made);
    const nowMs = await this.nowMs();
    for (const [position, { request, number }] of attempts.entries()) {
      this.sameEnd(said?.[position], this.model.complete(request, number, made[position]!, nowMs));
    }
    if (attempts.length > 1) this.gathered += 1;
  }

  private async fail(attempt = this.anAttempt(), isStopped = false): Promise<void> {
    if (attempt === undefined) return;
    const made = this.segment(attempt);
    const kind = isStopped
      ? {}
      : { countsAsFailure: this.decide(3) === 0, retryable: this.decide(8) > 0, timedOut: this.decide(6) === 0 };
    const said = await this.follower?.fail(attempt, made, kind);
    const { request, number } = attempt;
    this.sameEnd(said, this.model.fail(request, number, { segment: made, ...kind }, await this.nowMs()));
  }

  /** A worker hands a sample in, or an operator takes it from its worker. */
  private async requeue(): Promise<void> {
    const attempt = this.anAttempt();
    if (attempt === undefined) return;
    const last = this.decide(2) === 0 ? this.segment(attempt) : undefined;
    const said = await this.follower?.requeue(attempt, last);
    const { request, number } = attempt;
    const { state, aborts } = this.model.requeue(request, number, await this.nowMs(), last && { last });
    this.sameEnd(said, { state, aborts });
    if (state !== 'FENCED') {
      this.requeues += 1;
      // A requeue cuts the group whatever its policy allows.
      this.brokenOff += 1;
    }
    await this.confirmSome(aborts);
  }

  /** Cuts the remaining groups of completed rounds; some holders confirm. */
  private async cut(): Promise<void> {
    const said = await this.follower?.cut(this.rounds);
    const aborts = this.model.cut();
    this.same(said, listAttemptNames(aborts));
    await this.confirmSome(aborts);
  }

  private async expireWorker(): Promise<void> {
    const workerId = this.pick(WORKERS)!;
    // The scripts may return several attempts in any order, which the model does not follow.
    if (this.follower && this.model.held(workerId).size > 1) return;
    await this.follower?.expireWorker(workerId);
    this.model.expiredHolder(workerId, await this.nowMs());
    this.given = this.given.filter((attempt) => attempt.workerId !== workerId);
  }

  private async dropGroup(): Promise<void> {
    const group = this.pick([...this.groups.values()]);
    if (group === undefined) return;
    const said = await this.follower?.dropGroup(group);
    this.same(said, listAttemptNames(this.model.dropGroup(group, await this.nowMs())));
  }

  private async stopSample(): Promise<void> {
    const request = this.pick(this.pick([...this.groups.values()])?.requests ?? []);
    if (request === undefined || isForgotten(request.group)) return;
    const said = await this.follower?.stopSample(request);
    this.same(said, listAttemptNames(this.model.stopSample(request, await this.nowMs())));
  }

  /** Moves a request to another server; its holder may confirm. */
  private async move(): Promise<void> {
    const request = this.pick(this.pick([...this.groups.values()])?.requests ?? []);
    if (request === undefined || isForgotten(request.group)) return;
    const said = await this.follower?.move(request);
    const { state, aborts } = this.model.move(request);
    this.sameEnd(said, { state, aborts });
    this.moves += aborts.length;
    await this.confirmSome(aborts);
  }

  private async expireMoves(): Promise<void> {
    const said = await this.follower?.expireMoves();
    this.same(said, this.model.expireMoves());
  }

  /** Changes the weights of the pool, which stops all held requests. */
  private async changeWeights(): Promise<void> {
    const said = await this.follower?.changeWeights(this.given.filter(isHeld));
    const aborts = this.model.stopHeld();
    this.same(said, listAttemptNames(aborts));
    if (aborts.length > 0) this.weightChanges += 1;
    await this.confirmSome(aborts);
  }

  private async confirmSome(aborts: readonly ModelAbort[]): Promise<void> {
    for (const { request, attempt } of aborts) {
      const given = this.given.find((one) => one.request === request && one.number === attempt);
      if (given !== undefined && this.decide(2) === 0) await this.fail(given, true);
    }
  }

  /** Lets the deadline of the round pass; the model has no clock. */
  private async expireRound(): Promise<void> {
    const isDue = (await this.follower?.expireRound()) ?? this.setting.policy.deadlineMs !== undefined;
    if (!isDue) return;
    this.brokenOff += 1;
    this.model.expire(await this.nowMs());
  }

  /** Picks an attempt, mostly an attempt that its worker still holds; undefined if the group was folded with its round. */
  private anAttempt(): GivenAttempt | undefined {
    const attempt = this.pick(this.decide(6) === 0 ? this.given : this.given.filter(isHeld));
    return attempt && !isForgotten(attempt.request.group) ? attempt : undefined;
  }

  private segment({ request, number }: GivenAttempt): ModelSegment {
    const tokens = (request.savedSegment?.tokens ?? 0) + this.decide(200);
    return { attempt: number, weightVersion: request.group.round.weightVersion, tokens };
  }
}

const isHeld = ({ request, number }: GivenAttempt): boolean =>
  request.attempt === number && ['claimed', 'running', 'cutting'].includes(request.state);
