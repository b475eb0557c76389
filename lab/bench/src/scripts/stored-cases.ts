import { LIMITS } from '@broomwagon/contracts';
import {
  JobStore,
  PromptMemoryStore,
  promptHash,
  RemovalStore,
  type RedisClient,
  toTrajectoryId,
  TrajectoryStore,
} from '@broomwagon/state';
import { transition } from '../../../../libs/state/src/library/function-runner';
import { KEY_PREFIX } from '../stage';
import { TimedRunner } from './timed-runner';

const PAGE: number = LIMITS.page;
const FULL_PAGE = `pages of ${PAGE}`;
const QUOTA_BYTES = 1e12;
/** Most turns of a session (`trajectories/trajectories.lua`). */
const TURNS = 256;
const range = (count: number) => Array.from({ length: count }, (_, index) => index);

/** Measures payloads, prompts, trajectories and pending removals: as many as one script may change. */
export class StoredCases {
  private readonly payloads: TimedRunner;
  private repeat = 0;

  constructor(
    private readonly runner: TimedRunner,
    private readonly redis: RedisClient,
    private readonly pool: string,
  ) {
    this.payloads = new TimedRunner(redis, `${KEY_PREFIX}:payload`, runner);
  }

  async run(): Promise<void> {
    this.repeat += 1;
    await this.storePayloads(`${this.pool}/job-${this.repeat}`);
    await this.runner.measure(FULL_PAGE, async () => {
      await this.prompts();
      await this.removals();
      const room = { job: 'job', usedBytes: 1, quotaBytes: 2, bytesPerToken: 1, isRefused: false };
      await new JobStore(this.runner).payloadRoom(this.pool, room);
    });
    await this.runner.measure(`sessions of ${TURNS} turns`, () => this.trajectories());
  }

  /** Stores and removes payloads as RedisPayloadStore does. */
  private async storePayloads(job: string): Promise<void> {
    const { payloads } = this;
    const run = (name: string, args: object, ...chunks: Buffer[]) =>
      payloads.run(transition<object, object>(name), job, args, ...chunks);
    const items = range(PAGE).map((index) => `${'o'.repeat(300)}~${index}`);
    const chunk = Buffer.alloc(LIMITS.payloadChunkBytes, 'x');
    const put = (item: string, index: number, count: number, bytes: Buffer) =>
      run('payload/put-chunk', { item, index, count, quotaBytes: QUOTA_BYTES }, bytes);
    await payloads.measure(FULL_PAGE, async () => {
      for (let index = 0; index < LIMITS.payloadChunks; index++)
        await put(items[0]!, index, LIMITS.payloadChunks, chunk);
      for (const item of items.slice(1)) await put(item, 0, 1, chunk.subarray(0, 16));
      const saves = items.map((item) => `${item}-save`);
      const pieces = saves.map(() => chunk.subarray(0, chunk.length / PAGE));
      await run('payload/put-many', { items: saves, quotaBytes: QUOTA_BYTES }, ...pieces);
      await run('payload/remove', { items: saves });
      for (const hold of [false, true]) await run('payload/free', { items, hold });
      await run('payload/remove', { items });
    });
  }

  private async prompts(): Promise<void> {
    const memory = new PromptMemoryStore(this.runner);
    const hashes = range(PAGE).map((index) => promptHash(`prompt-${this.repeat}-${index}`));
    const lengths = range(LIMITS.samplesPerGroup).map((index) => 100 * index);
    await memory.remember(
      this.pool,
      hashes.map((hash) => ({ hash, lengths, atCap: false })),
    );
    await memory.lengths(this.pool, hashes);
  }

  private async removals(): Promise<void> {
    const removals = new RemovalStore(this.runner);
    const key = `${this.runner.rootKey(this.pool)}:payloads:freed`;
    for (const index of range(2 * PAGE)) await this.redis.zadd(key, 1, `${'r'.repeat(400)}-${index}`);
    const terms = { deleteAfterMs: 1, lossWindowMs: 1, maxBytes: 1 };
    for (let isDone = false; !isDone;) {
      const { unweighed, due } = await removals.look(this.pool, terms);
      if (unweighed.length > 0)
        await removals.weighed(this.pool, { payloads: unweighed.map((ref) => ({ ref, bytes: 1_000 })) });
      if (due.length > 0) await removals.removed(this.pool, { refs: due });
      isDone = unweighed.length + due.length === 0;
    }
  }

  /** Fills two sessions with turns; one is deleted, the other expires. */
  private async trajectories(): Promise<void> {
    const store = new TrajectoryStore(this.runner);
    const ids = ['deleted', 'expired'].map((name) => toTrajectoryId(`${name} ${this.repeat}`));
    for (const id of ids) {
      const about = JSON.stringify({ sessionId: id, tokenId: 't', job: 'job', createdAtMs: 1 });
      await store.open(this.pool, { id, about });
      for (const index of range(TURNS)) {
        const generation = `${index}`;
        const begun = await store.begin(this.pool, {
          id,
          tokenId: 't',
          identity: generation,
          generation,
          hasOwnId: false,
        });
        const turn = { id, turn: begun.turn!, generation };
        await store.miss(this.pool, { ...turn, error: 'UNAVAILABLE' });
        const ref = `redis~${this.pool}~job~trajectory~${id}~${index}`;
        const record = JSON.stringify({ turn: begun.turn, ref, weights: 'x'.repeat(1_000) });
        await store.record(this.pool, { ...turn, ref, record, sequence: `1|${'d'.repeat(64)}|${generation}` });
      }
      await store.sequences(this.pool, { id });
      await store.read(this.pool, { id });
    }
    await store.list(this.pool, { tokenId: 't' });
    await store.delete(this.pool, { id: ids[0]! });
    await store.expire(this.pool, { idleMs: 0 });
  }
}
