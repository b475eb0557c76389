import { type AttemptId, type GroupResult, isBroomwagonError, type RestoreJobRequest } from '@broomwagon/contracts';
import { expect } from 'vitest';
import { GivingUpWorld } from '../longtail/giving-up-world.fixture';
import { JOB, redis, rounds, runner } from '../rounds/data-set-world.fixture';
import { SnapshotStore } from './snapshot.store';
import type { RestoreSnapshotPage } from './snapshot.store';

const snapshots = new SnapshotStore(runner);
/** Fields of fences, which a restore keeps or raises. */
const FENCES = new Set(
  `trainerEpoch takeovers trainerSeenAtMs saving restoredFrom restoredEpoch restoredNumber arrival`.split(' '),
);

type Dump = Record<string, string>;
/** State of the trainer and of Redis at a snapshot. */
interface Saved {
  tag: string;
  steps: number;
  submitted: number;
  trained: [string, GroupResult][];
  acknowledged: [string, [AttemptId, number][]][];
  dump: Dump;
}

/** A world whose trainer saves its job and falls back to saved snapshots. */
export class SnapshotWorld extends GivingUpWorld {
  restores = 0;
  private saved: Saved[] = [];
  private tags = 0;

  /** Saves a snapshot between two rounds, as soon as nothing moves. Other messages may arrive between its pages. */
  async save(): Promise<void> {
    if (this.plan !== undefined || this.refused !== undefined || this.epoch === undefined) return;
    const args = { job: JOB, trainerEpoch: this.epoch, tag: `t${this.tags++}` };
    await this.whenAtRest(
      () => snapshots.save(this.pool, args),
      (page) => page.state === 'complete',
    );
    const answer = await snapshots.save(this.pool, args);
    expect(answer).toMatchObject({ state: 'complete', step: this.steps });
    this.saved = [
      ...this.saved.slice(-1),
      {
        tag: args.tag,
        steps: this.steps,
        submitted: this.submitted,
        trained: [...this.trained],
        acknowledged: [...this.acknowledged].map(([id, tokens]) => [id, [...tokens]]),
        dump: await this.dump(),
      },
    ];
    const { snapshots: listed } = await snapshots.list(this.pool, { job: JOB });
    expect(listed.map(({ tag }) => tag)).toEqual(this.saved.map(({ tag }) => tag));
  }

  /** Falls back to one of the two snapshots, and expects exactly its state. */
  async restore(): Promise<void> {
    const saved = this.pick(this.saved);
    // A refused open may still arrive, so nothing is restored before it.
    if (saved === undefined || this.refused !== undefined) return;
    await this.cancel(this.decide(2) === 0 ? 'drop' : 'requeue');
    const before = this.epoch!;
    const args = { job: JOB, tag: saved.tag, trainerEpoch: this.decide(2) === 0 ? before : undefined };
    const page = await this.fallBack(args);
    // Without an epoch each call is from another trainer; with one, the second call is a repeat.
    const again = await this.fallBack(args);
    const { trainerEpoch } = again;
    expect(trainerEpoch !== page.trainerEpoch).toBe(args.trainerEpoch === undefined);
    expect(again).toEqual({ ...page, trainerEpoch, retired: false, stamp: again.stamp });
    expect(page).toMatchObject({ stepsTrained: saved.steps, submittedGroups: saved.submitted });
    await expect(rounds.status(this.pool, { job: JOB, trainerEpoch: before })).rejects.toMatchObject({
      code: 'FENCED',
    });
    expect(await this.dump()).toEqual(saved.dump);
    this.restores += 1;
    this.epoch = trainerEpoch;
    ({ steps: this.steps, submitted: this.submitted } = saved);
    this.plan = undefined;
    this.refused = undefined;
    this.trained.clear();
    for (const [groupId, group] of saved.trained) this.trained.set(groupId, group);
    this.acknowledged.clear();
    for (const [id, tokens] of saved.acknowledged) this.acknowledged.set(id, new Map(tokens));
    this.saved = this.saved.slice(0, this.saved.indexOf(saved) + 1);
    // A repeat of an earlier open without an epoch would count as an open of a new trainer.
    this.sent.length = 0;
  }

  /** Restores all pages of one call as one trainer. */
  private fallBack(args: RestoreJobRequest): Promise<RestoreSnapshotPage> {
    let { trainerEpoch } = args;
    const page = async () => {
      const answer = await snapshots.restore(this.pool, { ...args, trainerEpoch });
      ({ trainerEpoch } = answer);
      return answer;
    };
    return this.whenAtRest(page, ({ state }) => state === 'restored');
  }

  /** Repeats a page until it is the last. Between pages, the remains of a cancelled round are swept. */
  private async whenAtRest<Page>(page: () => Promise<Page>, isLast: (page: Page) => boolean): Promise<Page> {
    for (let turn = 0; turn < 1_000; turn++) {
      const answer = await page().catch((error: unknown) => {
        if (!isBroomwagonError(error, 'ROUND_SETTLING')) throw error;
        return undefined;
      });
      if (answer !== undefined && isLast(answer)) return answer;
      if (answer === undefined) {
        await this.expiredWorker();
        await this.sweep();
      }
      await this.audit();
    }
    throw new Error('The job never came to rest');
  }

  /** Copies everything of the job except for fences: hashes field by field, queues with their places. */
  private async dump(): Promise<Dump> {
    const root = `${runner.rootKey(this.pool)}:`;
    const dump: Dump = {};
    for (const key of await redis.keys(`${root}*`)) {
      const name = key.slice(root.length);
      if (!/^(job|job-.*|group|request|round):job/.test(name) || /^job-(snapshots|prompts)/.test(name)) continue;
      if ((await redis.type(key)) === 'zset') dump[name] = (await redis.zrange(key, '0', '-1', 'WITHSCORES')).join();
      else {
        const fields = Object.entries(await redis.hgetall(key)).filter(([field]) => !FENCES.has(field));
        dump[name] = JSON.stringify(fields.sort(([a], [b]) => (a < b ? -1 : 1)));
      }
    }
    return dump;
  }
}
