import type { DecisionSnapshot, Epoch } from '@broomwagon/contracts';
import { replayDecision } from '@broomwagon/policies';
import { RoutingModel, type ModelAnswer, type ModelTransfer, type ModelWaiterAnswer } from '@broomwagon/models';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { expect } from 'vitest';
import { connectRedis } from '../redis';
import { FunctionRunner } from '../library/function-runner';
import { PoolStore } from '../pools/pool.store';
import { LeaseStore } from '../leases/lease.store';
import { WorkerStore } from '../workers/worker.store';
import type { Granted } from '../leases/grants';
import { SessionStore } from '../sessions/session.store';
import type { WaiterAnswer } from '../leases/grants';
import { ServerStore } from '../servers/server.store';

const redis = connectRedis({ url: testRedisUrl() });
const { pool: prefix } = testPool();
const runner = new FunctionRunner(redis, prefix);
export const leases = new LeaseStore(runner);
export const workers = new WorkerStore(runner);
export const pools = new PoolStore(runner);
export const servers = new ServerStore(runner);
export const sessions = new SessionStore(runner);
let opened = 0;

/** Ends the connection and removes all keys. */
export async function closeStores(): Promise<void> {
  await redis.quit();
  await flushPrefix(testRedisUrl(), `${prefix}:`);
}

/** The scripts and the reference model, which get the same commands, and the records of the test. */
export class Pair {
  readonly model = new RoutingModel(() => this.epochs.at(-1)!);
  readonly pool = `pool-${opened++}`;
  /** Epochs and lease sequences ever given out, so that late and stale commands can be sent. */
  readonly epochs: Epoch[] = [];
  readonly workerEpochs = new Map<string, Epoch>();
  /** Number of the last registration of each worker. */
  readonly registrations = new Map<string, number>();
  readonly sequences = new Map<string, number[]>();
  readonly waiting = new Set<string>();
  /** Transfers requested so far, so that they can be repeated. */
  readonly transfers: ModelTransfer[] = [];
  hasExpired = false;

  /** Notes an epoch that the script has started, so that the model starts the same one in its next command. */
  begin(epoch: Epoch): void {
    if (!this.epochs.includes(epoch)) this.epochs.push(epoch);
  }

  /** Expects equal answers to parked calls from script and model, and exactly one answer for each waiter. */
  compareAnswers(real: WaiterAnswer[], expected: ModelWaiterAnswer[]): void {
    const inboxes = expected.map((answer) => ({ ...answer, replyTo: `inbox.${answer.acquireId}` }));
    const timeless = real.map((answer) => replayed({ ...answer, waitedMs: undefined }));
    expect(timeless).toEqual(inboxes);
    for (const { acquireId } of real) {
      expect(this.waiting.delete(acquireId), `a second answer for ${acquireId}`).toBe(true);
    }
    for (const answer of expected) this.remember(answer.acquireId, answer);
  }

  remember(acquireId: string, answer: ModelAnswer): void {
    if ('seq' in answer) this.sequences.set(acquireId, [...(this.sequences.get(acquireId) ?? []), answer.seq]);
    if ('parked' in answer) this.waiting.add(acquireId);
  }

  /** Sweeps one expired owner at a time, so that the order in which the sweep takes owners does not matter. */
  async sweep(): Promise<void> {
    const answers: WaiterAnswer[] = [];
    let more = true;
    while (more) {
      const page = await leases.sweep(this.pool);
      answers.push(...page.answers);
      more = page.more;
    }
    this.compareAnswers(answers, this.model.sweep());
    this.hasExpired = false;
  }

  private async acquiresByRequest(): Promise<Record<string, string[]>> {
    // The field '' only makes Redis store the hash as a table.
    const { '': _, ...lists } = await redis.hgetall(`${runner.rootKey(this.pool)}:leases:requests`);
    return Object.fromEntries(Object.entries(lists).map(([requestId, list]) => [requestId, list.split('|').sort()]));
  }

  private modelAcquiresByRequest(): Record<string, string[]> {
    const lists: Record<string, string[]> = {};
    for (const [acquireId, { acquire }] of this.model.leases) (lists[acquire.requestId] ??= []).push(acquireId);
    for (const list of Object.values(lists)) list.sort();
    return lists;
  }

  /** Expects that leases of servers == leases == leases of worker epochs, as in the model. */
  async compareCounts(): Promise<void> {
    const status = await pools.status(this.pool);
    expect(status.leases).toBe(this.model.leases.size);
    expect(await this.acquiresByRequest()).toEqual(this.modelAcquiresByRequest());
    expect(status.waiters).toBe(this.model.lanes.size);
    expect(this.waiting.size).toBe(this.model.lanes.size);
    expect(status.sessions).toBe(this.model.sessions.size);
    const listed = (await servers.list(this.pool)).servers;
    const inflight = Object.fromEntries(listed.map((server) => [server.serverId, server.inflight]));
    const expected = [...this.model.servers.keys()].map((id) => [id, this.model.inflight(id)] as const);
    expect(inflight).toEqual(Object.fromEntries(expected));
    for (const server of listed) expect(server.inflight).toBeLessThanOrEqual(server.maxInflight);
    if (this.hasExpired) return;
    expect(listed.reduce((sum, server) => sum + server.inflight, 0)).toBe(status.leases);
    let ofWorkers = 0;
    for (const [workerId, epoch] of this.workerEpochs) {
      const held = await workers.heartbeat(this.pool, { workerId, workerEpoch: epoch }).catch(() => undefined);
      const { count, digest } = this.model.heldBy(workerId, epoch);
      if (held) expect([held.leaseCount, held.leaseDigest]).toEqual([count, digest]);
      ofWorkers += held?.leaseCount ?? 0;
    }
    expect(ofWorkers).toBe(status.leases);
  }
}

/** Number of full receipts replayed so far. */
export let replays = 0;

/** Replays the choice of a full receipt, and removes the snapshot, which the model does not have. */
export function replayed<Answer extends object>(answer: Answer): Answer {
  if (!('snapshot' in answer)) return answer;
  const { snapshot, ...rest } = answer as Answer & Granted & { snapshot: DecisionSnapshot };
  const again = replayDecision(snapshot);
  const { serverId, branch, via, key, best, eligible } = rest;
  expect(again).toMatchObject({ server: serverId, branch: branch === 'waited' ? via : branch, key, best, eligible });
  if (branch !== 'waited') expect(again?.via).toBe(via);
  replays++;
  return rest as unknown as Answer;
}
