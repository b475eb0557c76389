import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isBroomwagonError } from '@broomwagon/contracts';
import { expect } from 'vitest';
import type { TestSystem } from './test-system';

/**
 * Deadline of a change of weights: longer than any data set, since after the deadline nobody would report the weights of
 * the servers, and they would take no requests.
 */
const CHANGE_DEADLINE_MS = 600_000;

const APP_OF: Record<string, string> = { coordinator: 'trainer-coordinator' };

/** Every name given to `failpoint()` in the applications. */
export function failpointNames(): string[] {
  const files = readdirSync('apps', { recursive: true, encoding: 'utf8' }).filter((file) =>
    /(?<!spec)\.ts$/.test(file),
  );
  const calls = files.flatMap((file) => [
    ...readFileSync(join('apps', file), 'utf8').matchAll(/failpoint\('([^']+)'/g),
  ]);
  return [...new Set(calls.map(([, name]) => name!))].sort();
}

/** The application that visits this failpoint. */
export function toApp(failpoint: string): string {
  const prefix = failpoint.split('.')[0]!;
  return APP_OF[prefix] ?? prefix;
}

/** Calls that lead an application to failpoints which a data set alone does not visit. They change no data set. */
export class Provocations {
  /** Changes of weights that may have begun. */
  private readonly changes: string[] = [];

  /** @param run part of all ids, different for each run */
  constructor(
    private readonly system: TestSystem,
    private readonly run: string,
  ) {}

  /** Makes calls that reach a failpoint which a data set alone never reaches. They change nothing of the data set. */
  provoke(name: string): Promise<unknown> {
    const calls = Array.from({ length: 24 }, (_, index) => `${name}-${this.run}-${index}`);
    if (name.startsWith('coordinator.abort')) {
      return Promise.all(
        calls.map((abortId) => this.system.call('request.abort', { abortId, requestIds: [`nobody/${abortId}/0`] })),
      );
    }
    if (name.startsWith('coordinator.move')) {
      const moves = [{ requestId: 'nobody/g/0', targetServerId: 'engine-0' }];
      return Promise.all(calls.map((planId) => this.system.call('rebalance.execute', { planId, moves })));
    }
    if (name.startsWith('coordinator.weights')) return this.changeWeights(calls.slice(0, 8));
    if (name.startsWith('load-balancer.engine')) return this.pauseEngines(calls.slice(0, 4));
    if (name.startsWith('coordinator.requeue')) return this.handInUnknown(calls);
    if (name.startsWith('coordinator.open')) return Promise.all(calls.slice(0, 8).map((job) => this.openInPages(job)));
    if (name.startsWith('coordinator.reconcile')) {
      return Promise.all(calls.slice(0, 8).map((job) => this.reconcileInPages(job)));
    }
    if (/^coordinator\.(give-back|snapshot|restore|unlink)\./.test(name)) {
      return Promise.all(calls.slice(0, 8).map((job) => this.saveAndFallBack(job)));
    }
    if (name.startsWith('load-balancer.sweep'))
      return Promise.all(calls.slice(0, 8).map((id) => this.leaveLeaseBehind(id.replaceAll('.', '-'))));
    if (name.startsWith('load-balancer.configure')) {
      return Promise.all(calls.map(() => this.system.call('pool.configure', {})));
    }
    return Promise.resolve();
  }

  /** Ends changes of weights again, of which Redis may have lost the end: the pool would grant nothing any more. */
  async endAgain(): Promise<void> {
    for (const syncId of this.changes) {
      await this.system.call('weights.commit', { syncId }).catch((error: unknown) => {
        if (!isBroomwagonError(error) || error.retryable) throw error;
      });
    }
  }

  /** Changes the weights to the version that the engines have: running requests are stopped, and continued. */
  private async changeWeights(calls: readonly string[]): Promise<void> {
    for (const syncId of calls) await this.change(syncId);
  }

  /** Changes weights while all engines are paused. They all go on afterwards, whichever process was killed. */
  private async pauseEngines(calls: readonly string[]): Promise<void> {
    const paused = async () => {
      const { servers } = await this.system.call('weights.status', { cursor: '0' });
      return (servers ?? []).filter((server) => server.paused).length;
    };
    for (const syncId of calls) {
      await this.change(syncId, () => expect.poll(paused).toBeGreaterThan(0));
      await expect.poll(paused).toBe(0);
    }
  }

  /** Begins a change of weights and ends it, even if its begin was answered by an error: the change may have begun. */
  private async change(syncId: string, meanwhile: () => Promise<void> = () => Promise.resolve()): Promise<void> {
    this.changes.push(syncId);
    try {
      const change = { syncId, version: 0, mode: 'abort', waitMs: 5_000, deadlineMs: CHANGE_DEADLINE_MS } as const;
      await this.system.call('weights.begin', change);
      await meanwhile();
    } finally {
      await this.system.call('weights.commit', { syncId });
    }
  }

  /** A job of its own, of which nothing runs: its groups, two pages of them, are given up and taken again. */
  private async openInPages(job: string): Promise<void> {
    await this.system.call('job.configure', { job, quota: { maxInFlight: 0 } });
    const groups = Array.from({ length: 4 }, (_, index) => ({
      groupId: `${job}-g${index}`,
      samples: 64,
      maxTokens: 1,
      prompt: { text: 'What is it?' },
    }));
    const policy = { name: 'resume', overProvision: 1 } as const;
    const { roundId, trainerEpoch } = await this.system.openRound(job, { groupsPerStep: 4, groups, policy });
    await this.system.call('round.cancel', { job, roundId, trainerEpoch, mode: 'requeue' });
    await expect.poll(async () => (await this.system.call('longtail.stats', { job })).groups).toBe(4);
    const plan = await this.system.call('round.next', { job, groupsPerStep: 4, remainingGroups: 0, policy });
    const open = { ...plan, job, roundId: 'again', kind: 'long' as const, policy, weightVersion: 0, trainerEpoch };
    expect(await this.system.call('round.open', open)).toMatchObject({ state: 'open', takenGroups: 4 });
    await this.system.call('round.cancel', { job, roundId: 'again', trainerEpoch, mode: 'drop' });
  }

  /** A job of its own whose trainer names two pages of groups that it has trained and Redis does not know. */
  private async reconcileInPages(job: string): Promise<void> {
    const wanted = { job, policy: { name: 'resume', overProvision: 1 } as const };
    const plan = await this.system.call('round.next', { ...wanted, groupsPerStep: 1, remainingGroups: 1 });
    const round = { ...plan, ...wanted, roundId: 'round', kind: 'short' as const, weightVersion: 0 };
    const { trainerEpoch } = await this.system.call('round.open', round);
    await this.system.call('round.cancel', { job, roundId: 'round', trainerEpoch, mode: 'requeue' });
    const groups = Array.from({ length: 4 }, (_, index) => ({ groupId: `${job}-g${index}`, samples: 64 }));
    const trained = { job, trainerEpoch, step: 1, groups, isLast: true };
    expect(await this.system.call('job.reconcile', trained)).toMatchObject({ stepsTrained: 1 });
  }

  /** Leaves a lease behind with its worker, for the sweep of the load-balancer. */
  private async leaveLeaseBehind(workerId: string): Promise<void> {
    const registration = { workerId, registrationId: workerId, ttlMs: 15_000 };
    const { workerEpoch } = await this.system.call('worker.register', registration);
    const held = { acquireId: workerId, requestId: `nobody/${workerId}/0`, workerId, workerEpoch };
    await this.system.call('lb.acquire', { ...held, waitMs: 10_000 });
    await this.system.call('worker.deregister', { workerId, workerEpoch });
  }

  private async handInUnknown(calls: readonly string[]): Promise<void> {
    const identity = { workerId: 'aside', registrationId: calls[0]!, ttlMs: 60_000 };
    const { workerId, workerEpoch } = { ...identity, ...(await this.system.call('worker.register', identity)) };
    const requests = [{ requestId: 'nobody/g/0', attempt: '1-a' }];
    await Promise.all(
      calls.map(() => this.system.call('longtail.requeue', { job: 'nobody', workerId, workerEpoch, requests })),
    );
    await this.system.call('worker.deregister', { workerId, workerEpoch });
  }

  /** A job of its own: its round is given up, then it is saved three times, which retires one, and falls back. */
  private async saveAndFallBack(job: string): Promise<void> {
    const wanted = { job, policy: { name: 'resume', overProvision: 1 } as const };
    const plan = await this.system.call('round.next', { ...wanted, groupsPerStep: 1, remainingGroups: 1 });
    const roundId = 'round';
    const round = { ...plan, ...wanted, roundId, kind: 'short' as const, weightVersion: 0 };
    const { trainerEpoch } = await this.system.call('round.open', round);
    await this.system.call('round.cancel', { job, roundId, trainerEpoch, mode: 'requeue' });
    for (const tag of ['a', 'b', 'c']) await this.system.call('job.snapshot', { job, trainerEpoch, tag });
    expect(await this.system.call('job.restore', { job, trainerEpoch, tag: 'b' })).toMatchObject({ state: 'restored' });
    const { snapshots } = await this.system.call('job.snapshots', { job });
    expect(snapshots.map(({ tag }) => tag)).toEqual(['b']);
  }
}
