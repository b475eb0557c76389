import type { PoolName } from '@broomwagon/contracts';
import type { RedisClient } from '../redis-cluster';
import { type AbortResultsPage, type AbortSelector, AbortStore } from '../aborts/abort.store';
import type { AttemptFence } from '../requests/request.store';
import type { FunctionRunner } from '../library/function-runner';
import type { DueWork } from './round.types';

/** Name of the job of a world, which has only one. */
export const JOB = 'job';
const MAY_GO_ON = new Set(['pending', 'claimed', 'running', 'cutting', 'unfinished']);

interface AbortedWorld {
  readonly pool: PoolName;
  readonly groups: number;
  readonly samples: number;
  readonly minSamples: number;
  readonly decide: (choices: number) => number;
}
/** Rounds, groups and workers that can be aborted now. */
interface Scene {
  roundId: string;
  /** Number of submitted groups g0, g1, .. of the job. */
  submitted: number;
  workerIds: string[];
}

/** Random aborts of a world, with the groups and samples that they must end. */
export class WorldAborts {
  readonly ids: string[] = [];
  /** Groups that an abort must drop. */
  readonly intended = new Set<string>();
  /** Samples that were aborted alone, and must never be trained. */
  readonly stopped = new Set<string>();
  private readonly store = new AbortStore(this.runner);

  constructor(
    private readonly runner: FunctionRunner,
    private readonly redis: RedisClient,
    private readonly world: AbortedWorld,
  ) {}

  /** Starts a random abort. Sometimes its selection is left to the sweep, as if the process had died. */
  async begin(scene: Scene, send: (message: () => Promise<unknown>) => Promise<unknown>): Promise<void> {
    const { pool } = this.world;
    const abortId = `a${this.ids.length}`;
    const selector = this.choose(scene);
    const isAlone = 'requestIds' in selector && selector.scope === 'sample';
    const alone = isAlone ? await this.unfinished(selector.requestIds) : [];
    const expected = isAlone ? [] : await this.meantBy(selector, scene.submitted);
    await send(() => this.store.begin(pool, { abortId, selector, reason: 'test', keptMs: 600_000 }));
    this.ids.push(abortId);
    const isFlagged = 'roundId' in selector || 'job' in selector;
    if (this.world.decide(2) === 0)
      for (let more = true; more;) ({ more } = await this.store.select(pool, { abortId }));
    // Without a flag and a selection, nothing is aborted before the sweep selects it, so a completion may win.
    else if (!isFlagged || 'groupId' in selector) return;
    for (const groupId of expected) this.intended.add(groupId);
    for (const requestId of alone) this.stopped.add(requestId);
  }

  /** Sweeps one page of each kind of aborts. @returns aborts for workers */
  async sweep(due: DueWork): Promise<AttemptFence[]> {
    const { pool, decide } = this.world;
    for (const abortId of due.aborts) if (decide(2) === 0) await this.store.select(pool, { abortId });
    if (due.aborting === 0) return [];
    return (await this.store.repeat(pool, { deadlineMs: 600_000 })).aborts;
  }

  /** All pages of the results of an abort. */
  async readResults(abortId: string): Promise<AbortResultsPage['results']> {
    const all: AbortResultsPage['results'] = [];
    for (let cursor: number | undefined = 0; cursor !== undefined;) {
      const page: AbortResultsPage = await this.store.results(this.world.pool, { abortId, cursor, limit: 5 });
      all.push(...page.results);
      ({ cursor } = page);
    }
    return all;
  }

  private choose({ roundId, workerIds }: Scene): AbortSelector {
    const { decide, groups, samples, minSamples } = this.world;
    const groupId = `g${decide(groups)}`;
    switch (decide(8)) {
      case 0:
        return { roundId: roundId || 'r1', job: JOB };
      case 1:
        return decide(3) === 0 ? { job: JOB } : { groupId, job: JOB };
      case 2:
        return { workerId: workerIds[decide(workerIds.length)]! };
      case 3:
        return { groupId, job: JOB };
      default: {
        const requestIds = [`${JOB}/${groupId}/${decide(samples)}`, `${JOB}/g0/${samples - 1}`];
        const isAlone = minSamples < samples && decide(2) === 0;
        return isAlone ? { requestIds, scope: 'sample' } : { requestIds };
      }
    }
  }

  private key(name: string): string {
    return `${this.runner.rootKey(this.world.pool)}:${name}`;
  }

  /** Requests that may still become samples of a trained group. */
  private async unfinished(requestIds: readonly string[]): Promise<string[]> {
    const states = await Promise.all(requestIds.map((id) => this.redis.hget(this.key(`request:${id}`), 'state')));
    return requestIds.filter((id, index) => MAY_GO_ON.has(states[index] ?? '') && !this.stopped.has(id));
  }

  /** Groups that an abort drops: submitted groups now, later groups at their submit. */
  private async meantBy(selector: AbortSelector, submitted: number): Promise<string[]> {
    const meant: string[] = [];
    for (let position = 0; position < this.world.groups; position++) {
      const groupId = `g${position}`;
      const [state, roundId] = await this.redis.hmget(this.key(`group:${JOB}/${groupId}`), 'state', 'roundId');
      const named = 'groupId' in selector && selector.groupId === groupId;
      const mayBe = state === 'live' || state === 'unfinished';
      const isToCome = position >= submitted;
      if (named && (mayBe || isToCome)) meant.push(groupId);
      else if ('roundId' in selector && state === 'live' && roundId === selector.roundId) meant.push(groupId);
      else if ('job' in selector && !('groupId' in selector) && !('roundId' in selector) && mayBe) meant.push(groupId);
      else if ('requestIds' in selector) {
        const ofGroup = selector.requestIds.filter((one) => one.startsWith(`${JOB}/${groupId}/`));
        const isMeant = isToCome ? ofGroup.length > 0 : mayBe && (await this.unfinished(ofGroup)).length > 0;
        if (isMeant) meant.push(groupId);
      }
    }
    return meant;
  }
}
