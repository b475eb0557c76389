import { Injectable, Logger } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { attemptAll, failpoint } from '@broomwagon/platform';
import { type DueWork, type RoundName, RoundStore, type TakeAnswer } from '@broomwagon/state';
import { WorkerCommands } from '../commands/worker-commands';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { GrantService } from '../grants/grant.service';
import { PagedWork } from '../upkeep/paged-work';

/**
 * Runs the paged work of rounds: opens rounds, cuts completed rounds, gives back the groups of cancelled rounds, and
 * folds closed rounds.
 */
@Injectable()
export class RoundSweeps {
  private readonly logger = new Logger(RoundSweeps.name);
  /** Work that this process runs now: kind and round. */
  private readonly underWay = new Set<string>();
  private readonly cutAtMs = new Map<string, number>();

  constructor(
    private readonly rounds: RoundStore,
    private readonly grants: GrantService,
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

  /** Gives back or drops the groups of a round that has just been cancelled, in the background. */
  giveBackSoon(pool: PoolName, round: RoundName): void {
    this.soon(pool, round, 'give-back', () => this.giveBack(pool, round));
  }

  /** Folds a round that has just been closed, in the background. */
  foldSoon(pool: PoolName, round: RoundName): void {
    this.soon(pool, round, 'fold', () => this.fold(pool, round));
  }

  /** Ends rounds whose deadline has come. @throws BroomwagonError UNAVAILABLE */
  @PagedWork({ order: 10, isDue: ({ deadlines }) => deadlines > 0 })
  async expire(pool: PoolName): Promise<void> {
    await this.rounds.expire(pool);
  }

  /** Continues the work of rounds, also after the death of another process. @throws BroomwagonError UNAVAILABLE */
  @PagedWork({ order: 30, isDue: ({ rounds }) => rounds.length > 0 })
  async sweep(pool: PoolName, { rounds }: DueWork): Promise<void> {
    await attemptAll(rounds.map((round) => () => this.sweepRound(pool, round)));
    const before = Date.now() - 2 * this.config.cutRepeatMs;
    for (const [name, atMs] of this.cutAtMs) if (atMs < before) this.cutAtMs.delete(name);
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
    const last = this.cutAtMs.get(formatName(pool, round)) ?? 0;
    if (Date.now() - last >= this.config.cutRepeatMs) await this.cut(pool, round);
  }

  private async cut(pool: PoolName, round: RoundName): Promise<void> {
    this.cutAtMs.set(formatName(pool, round), Date.now());
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

  private soon(pool: PoolName, round: RoundName, kind: string, work: () => Promise<void>): void {
    this.once(pool, round, kind, work).catch((error: unknown) => {
      // The periodic sweep continues the work.
      this.logger.warn({ err: error, pool, job: round.job, roundId: round.roundId }, `The ${kind} failed`);
    });
  }

  /** Runs the work, unless this process runs the same work now. */
  private async once(pool: PoolName, round: RoundName, kind: string, work: () => Promise<void>): Promise<void> {
    const name = `${kind} ${formatName(pool, round)}`;
    if (this.underWay.has(name)) return;
    this.underWay.add(name);
    try {
      await work();
    } finally {
      this.underWay.delete(name);
    }
  }
}

function formatName(pool: PoolName, { job, roundId }: RoundName): string {
  return `${pool}/${job}/${roundId}`;
}
