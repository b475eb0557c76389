import { LockstepEngines, type EngineModel } from '@broomwagon/models';
import type { WallClock } from './wall-clock';

/** An engine that shares its step times with all engines of its group. */
export interface LockstepMember {
  readonly model: EngineModel;
  /** Whether the engine is stopped; then no engine of the group generates tokens. */
  readonly isStopped: boolean;
  /** Ends a request that has generated its last token. */
  finish(key: string): void;
}

/** Engines of one process that decode in lockstep on one clock, as the data-parallel ranks of one engine do. */
export class LockstepGroup {
  private readonly members: LockstepMember[] = [];

  constructor(private clock: WallClock) {}

  join(member: LockstepMember): void {
    this.members.push(member);
  }

  /** Starts anew with another clock. */
  reset(clock: WallClock): void {
    this.clock = clock;
  }

  get lagShare(): number {
    return this.clock.lagShare;
  }

  /** Moves all members on to the time of the wall clock. */
  catchUp(nowMs: number): void {
    const models = this.members.map(({ model }) => model);
    const isBusy = models.some(({ runningCount }) => runningCount > 0);
    const seconds = this.clock.step(nowMs, isBusy);
    if (this.members.some(({ isStopped }) => isStopped)) return;
    const engines = new LockstepEngines(models);
    const ended: [rank: number, key: string][] = [];
    for (let left = seconds; left > 0;) left -= engines.advance(left, (rank, key) => ended.push([rank, key]));
    for (const [rank, key] of ended) this.members[rank]!.finish(key);
  }
}
