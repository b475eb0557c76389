import { Injectable, Logger } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { failpoint, InEachPool } from '@broomwagon/platform';
import {
  type DueWork,
  LongtailStore,
  PoolAudit,
  RequestStore,
  type RoundName,
  RoundStore,
  type TakeAnswer,
} from '@broomwagon/state';
import { AbortService } from '../aborts/abort.service';
import { SnapshotService } from '../snapshots/snapshot.service';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { MoveSenderService } from '../rebalance/move-sender.service';
import { GrantService } from '../requests/grant.service';
import { WeightSyncService } from '../weights/weight-sync.service';
import { WorkerCommands } from './worker-commands';

/**
 * Does the work that follows a change of state, page by page: cuts groups that completed rounds did not accept, folds
 * closed rounds, gives back groups of cancelled rounds, opens rounds whose opener died, returns attempts of expired
 * worker epochs, follows aborts and groups on their way to the long-tail queue, deletes old snapshots. Every page is a
 * script that checks again, so all replicas may sweep at once, and each continues the work of a failed one.
 */
@Injectable()
export class SweepService {
  private readonly logger = new Logger(SweepService.name);
  /** Work on rounds that this process does now, by kind and round. */
  private readonly underWay = new Set<string>();
  private readonly cutAtMs = new Map<string, number>();
  private readonly repeatedAtMs = new Map<PoolName, number>();
  private readonly generations = new Map<PoolName, string>();

  constructor(
    private readonly rounds: RoundStore,
    private readonly requests: RequestStore,
    private readonly longtail: LongtailStore,
    private readonly aborts: AbortService,
    private readonly snapshots: SnapshotService,
    private readonly weights: WeightSyncService,
    private readonly moves: MoveSenderService,
    private readonly grants: GrantService,
    private readonly audit: PoolAudit,
    private readonly commands: WorkerCommands,
    private readonly metrics: CoordinatorMetrics,
    private readonly config: CoordinatorConfig,
  ) {}

  /** Takes groups of the long-tail queue into a round until it is open. @throws BroomwagonError */
  async open(pool: PoolName, { job, roundId, stamp }: RoundName & { stamp?: string }): Promise<TakeAnswer> {
    for (;;) {
      const page = await this.rounds.take(pool, { job, roundId, stamp });
      this.metrics.sweepPages.inc({ kind: 'take' });
      this.grants.soon(pool);
      if (page.state !== 'opening') return page;
      await failpoint('coordinator.open.between-pages');
    }
  }

  /** Cuts the remaining groups of a round that has just completed, in the background. */
  cutSoon(pool: PoolName, round: RoundName): void {
    this.soon(pool, round, 'cut', () => this.cut(pool, round));
  }

  /** Gives back or drops the groups of a round that was just cancelled, in the background. */
  giveBackSoon(pool: PoolName, round: RoundName): void {
    this.soon(pool, round, 'give-back', () => this.giveBack(pool, round));
  }

  /** Folds a round that was just closed, in the background. */
  foldSoon(pool: PoolName, round: RoundName): void {
    this.soon(pool, round, 'fold', () => this.fold(pool, round));
  }

  /** Does all work that is due in a pool. @throws the first error, at the end: UNAVAILABLE, INTERNAL */
  @InEachPool('sweep', (config: CoordinatorConfig) => config.sweepIntervalMs)
  async sweep(pool: PoolName): Promise<void> {
    const due = await this.rounds.due(pool, { stamp: this.rounds.seenStamp(pool) });
    if (this.isRenewed(pool, due)) this.metrics.generations.inc({ pool });
    this.metrics.lostEntries.set({ pool }, due.lostEntries);
    this.metrics.miscounts.set({ pool }, due.miscounts);
    const errors: unknown[] = [];
    // An error, for example of a lost key, does not stop the later work.
    const attempt = (work: Promise<unknown>) => work.catch((error: unknown) => errors.push(error));
    if (due.deadlines > 0) await attempt(this.rounds.expire(pool));
    if (due.expiredEpochs > 0) await attempt(this.returnAttempts(pool));
    for (const round of due.rounds) await attempt(this.sweepRound(pool, round));
    for (const abortId of due.aborts) await attempt(this.aborts.select(pool, abortId));
    if (this.isRepeatDue(pool, due)) {
      if (due.leaving > 0) await attempt(this.repeatLeaving(pool));
      if (due.aborting > 0) await attempt(this.aborts.repeat(pool));
      if (due.moving > 0) await attempt(this.moves.repeat(pool));
    }
    if (due.dropped > 0) await attempt(this.aborts.forget(pool));
    if (due.oldSnapshots > 0) await attempt(this.snapshots.unlinkOld(pool));
    await attempt(this.weights.sweep(pool, due));
    if (due.uncheckedGeneration) await attempt(this.audit.markCounts(pool, due.uncheckedGeneration));
    this.forgetOld();
    if (errors.length > 0) throw errors[0];
  }

  /** Whether unconfirmed commands are repeated to their holders now. */
  private isRepeatDue(pool: PoolName, { leaving, aborting, moving }: DueWork): boolean {
    const isDue = Date.now() - (this.repeatedAtMs.get(pool) ?? 0) >= this.config.cutRepeatMs;
    if (leaving + aborting + moving === 0 || !isDue) return false;
    this.repeatedAtMs.set(pool, Date.now());
    return true;
  }

  /** Repeats the commands to holders of samples whose group is being requeued. */
  private async repeatLeaving(pool: PoolName): Promise<void> {
    for await (const page of this.longtail.pages('repeat', pool)) {
      this.metrics.sweepPages.inc({ kind: 'leave' });
      this.commands.abort(pool, 'cut', page.aborts);
    }
  }

  /** Whether the generation of the pool was renewed by the last read, or since the read before it. */
  private isRenewed(pool: PoolName, { renewed = false, stamp }: DueWork): boolean {
    const [generation] = stamp.split('.') as [string];
    const known = this.generations.get(pool);
    this.generations.set(pool, generation);
    return renewed || (known !== undefined && known !== generation);
  }

  private async sweepRound(pool: PoolName, round: DueWork['rounds'][number]): Promise<void> {
    if (round.state === 'cancelled') await this.once(pool, round, 'give-back', () => this.giveBack(pool, round));
    if (round.state === 'opening') await this.open(pool, round);
    else await this.once(pool, round, 'cut', () => this.cutAgain(pool, round));
    if (round.state === 'closed' || round.state === 'cancelled')
      await this.once(pool, round, 'fold', () => this.fold(pool, round));
  }

  private async giveBack(pool: PoolName, round: RoundName): Promise<void> {
    for await (const page of this.rounds.whileMore('giveBack', pool, round)) {
      this.metrics.sweepPages.inc({ kind: 'give-back' });
      this.commands.abort(pool, 'abort', page.aborts);
      await failpoint('coordinator.give-back.between-pages');
    }
    await this.cutAgain(pool, round);
  }

  private async cutAgain(pool: PoolName, round: RoundName): Promise<void> {
    const last = this.cutAtMs.get(nameOf(pool, round)) ?? 0;
    if (Date.now() - last >= this.config.cutRepeatMs) await this.cut(pool, round);
  }

  private async cut(pool: PoolName, round: RoundName): Promise<void> {
    this.cutAtMs.set(nameOf(pool, round), Date.now());
    for await (const page of this.rounds.pages('cut', pool, round)) {
      this.metrics.sweepPages.inc({ kind: 'cut' });
      this.commands.abort(pool, 'cut', page.aborts);
      await failpoint('coordinator.cut.between-pages');
    }
  }

  private async fold(pool: PoolName, round: RoundName): Promise<void> {
    for await (const _ of this.rounds.whileMore('fold', pool, round)) {
      this.metrics.sweepPages.inc({ kind: 'fold' });
      await failpoint('coordinator.fold.between-pages');
    }
  }

  private async returnAttempts(pool: PoolName): Promise<void> {
    let pending = 0;
    for await (const page of this.requests.whileMore('expiredAttempts', pool)) {
      this.metrics.sweepPages.inc({ kind: 'expired' });
      this.metrics.attempts.inc({ outcome: 'expired' }, page.returned);
      pending += page.pending;
    }
    if (pending > 0) this.grants.soon(pool);
  }

  private soon(pool: PoolName, round: RoundName, kind: string, work: () => Promise<void>): void {
    this.once(pool, round, kind, work).catch((error: unknown) => {
      // The periodic sweep repeats the work.
      this.logger.warn({ err: error, pool, job: round.job, roundId: round.roundId }, `The ${kind} failed`);
    });
  }

  /** Runs the work unless this process already does it: a second run would only repeat each page. */
  private async once(pool: PoolName, round: RoundName, kind: string, work: () => Promise<void>): Promise<void> {
    const name = `${kind} ${nameOf(pool, round)}`;
    if (this.underWay.has(name)) return;
    this.underWay.add(name);
    try {
      await work();
    } finally {
      this.underWay.delete(name);
    }
  }

  private forgetOld(): void {
    const before = Date.now() - 2 * this.config.cutRepeatMs;
    for (const [name, atMs] of this.cutAtMs) if (atMs < before) this.cutAtMs.delete(name);
  }
}

function nameOf(pool: PoolName, { job, roundId }: RoundName): string {
  return `${pool}/${job}/${roundId}`;
}
