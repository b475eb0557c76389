import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { attemptAll, InEachPool, MethodFinder } from '@broomwagon/platform';
import { type DueWork, RoundStore } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { type PagedWorkOptions, RegisteredWork, type RunWork } from './paged-work';

interface Work extends PagedWorkOptions {
  name: string;
  run: RunWork;
}

/**
 * Finds the work that is due in each pool, and runs the methods that are registered with `@PagedWork` in their order.
 */
@Injectable()
export class SweepService implements OnModuleInit {
  private works: Work[] = [];
  private readonly repeatedAtMs = new Map<PoolName, number>();
  private readonly generations = new Map<PoolName, string>();

  constructor(
    private readonly rounds: RoundStore,
    private readonly methods: MethodFinder,
    private readonly metrics: CoordinatorMetrics,
    private readonly config: CoordinatorConfig,
  ) {}

  /** @throws Error if two kinds have the same order */
  onModuleInit(): void {
    const found = this.methods.find<PagedWorkOptions, RunWork>(RegisteredWork);
    this.works = found.map(({ name, options, run }) => ({ ...options, name, run }));
    this.works.sort((one, other) => one.order - other.order);
    for (const [index, { order, name }] of this.works.entries()) {
      const next = this.works[index + 1];
      if (next?.order === order) throw new Error(`${name} and ${next.name} have the same order, ${order}`);
    }
  }

  /** Runs all work that is due in a pool. @throws the first error (UNAVAILABLE, INTERNAL), after all work has run */
  @InEachPool('sweep', (config: CoordinatorConfig) => config.sweepIntervalMs)
  async sweep(pool: PoolName): Promise<void> {
    const due = await this.rounds.due(pool, { stamp: this.rounds.seenStamp(pool) });
    if (this.isRenewed(pool, due)) this.metrics.generations.inc({ pool });
    this.metrics.lostEntries.set({ pool }, due.lostEntries);
    this.metrics.miscounts.set({ pool }, due.miscounts);
    const dueWorks = this.works.filter(({ isDue }) => isDue(due));
    const repeats = dueWorks.some(({ isRepeat }) => isRepeat) && this.beginRepeat(pool);
    // Work that fails, for example because a key is lost, does not stop the next work.
    await attemptAll(
      dueWorks
        .filter(({ isRepeat }) => !isRepeat || repeats)
        .map(
          ({ run }) =>
            () =>
              run(pool, due),
        ),
    );
  }

  /** Whether this sweep repeats commands. */
  private beginRepeat(pool: PoolName): boolean {
    if (Date.now() - (this.repeatedAtMs.get(pool) ?? 0) < this.config.cutRepeatMs) return false;
    this.repeatedAtMs.set(pool, Date.now());
    return true;
  }

  /** Whether the pool generation was renewed since the last sweep, or by this sweep. */
  private isRenewed(pool: PoolName, { renewed = false, stamp }: DueWork): boolean {
    const [generation] = stamp.split('.') as [string];
    const known = this.generations.get(pool);
    this.generations.set(pool, generation);
    return renewed || (known !== undefined && known !== generation);
  }
}
