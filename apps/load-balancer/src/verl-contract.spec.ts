import { isBroomwagonError } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openLoadBalancers, type LoadBalancers, type TestWorker } from './load-balancer.fixture';

/** Text of the load balancer of verl, which an adapter raises for NO_SERVER_AVAILABLE. */
const VERL_NO_SERVER_MESSAGE = 'No available servers in load balancer';

let lb: LoadBalancers;
let calls = 0;

/** verl's `RequestLoadBalancer` with all its methods, made of our operations as in an adapter. */
class VerlLoadBalancer {
  /** Leases by server and request, the oldest first; one request id may hold several. */
  private readonly held: { serverId: string; requestId: string; leaseId: string }[] = [];

  constructor(private readonly worker: TestWorker) {}

  async acquireServer(requestId: string): Promise<string> {
    const acquire = { acquireId: `verl-${calls++}`, requestId, sessionId: requestId, ...this.worker };
    try {
      const { serverId, leaseId } = await lb.call('lb.acquire', acquire);
      this.held.push({ serverId, requestId, leaseId });
      return serverId;
    } catch (error) {
      if (isBroomwagonError(error, 'NO_SERVER_AVAILABLE')) throw new Error(VERL_NO_SERVER_MESSAGE, { cause: error });
      throw error;
    }
  }

  /** A release of an unknown or idle server is no error, and is sent all the same, so that it is counted. */
  async releaseServer(serverId: string, requestId?: string): Promise<void> {
    const at = this.held.findIndex(
      (lease) => lease.serverId === serverId && (requestId === undefined || lease.requestId === requestId),
    );
    const [lease] = at < 0 ? [] : this.held.splice(at, 1);
    await lb.release(lease?.leaseId ?? `unknown:${serverId}`);
  }

  async addServers(...serverIds: string[]): Promise<void> {
    for (const serverId of serverIds) await lb.server(serverId, 1_000_000);
  }

  async removeServers(...serverIds: string[]): Promise<void> {
    for (const serverId of serverIds) await lb.call('server.remove', { serverId });
  }

  async clearStickyCache(): Promise<number> {
    return (await lb.call('lb.clear-sessions', {})).cleared;
  }

  async getStatus(): Promise<Record<string, number>> {
    const { perServer } = await lb.status();
    return Object.fromEntries(perServer.map(({ serverId, inflight }) => [serverId, inflight]));
  }

  async getTotalInflight(): Promise<number> {
    return Object.values(await this.getStatus()).reduce((sum, inflight) => sum + inflight, 0);
  }
}

async function unknownReleases(): Promise<number> {
  return (await lb.metrics())
    .map((page) => Number(/releases_total\{[^}]*reason="unknown"[^}]*\} (\d+)/.exec(page)?.[1] ?? 0))
    .reduce((sum, count) => sum + count, 0);
}

beforeAll(async () => {
  lb = await openLoadBalancers(2);
});
afterAll(() => lb.close());
let verl: VerlLoadBalancer;
beforeEach(async () => {
  lb.nextPool();
  verl = new VerlLoadBalancer(await lb.worker());
});

describe("verl's contract, on two replicas", () => {
  it('raises the text of verl when there is no server', async () => {
    await expect(verl.acquireServer('r')).rejects.toThrow('No available servers in load balancer');
  });

  it('sends a request id to the same server again, and a new id to the server with the fewest in flight', async () => {
    await verl.addServers('s0', 's1', 's2');
    const first = new Map<string, string>();
    for (const id of ['a', 'b', 'c']) first.set(id, await verl.acquireServer(id));
    expect(new Set(first.values()).size).toBe(3);
    for (const id of ['a', 'a', 'b']) expect(await verl.acquireServer(id)).toBe(first.get(id));
    expect(await verl.acquireServer('d')).toBe(first.get('c'));
    expect(await verl.getTotalInflight()).toBe(7);
  });

  it('stays sticky whatever the load, also after the release', async () => {
    await verl.addServers('s0', 's1');
    const server = await verl.acquireServer('a');
    for (let n = 0; n < 5; n++) expect(await verl.acquireServer('a')).toBe(server);
    for (let n = 0; n < 6; n++) await verl.releaseServer(server, 'a');
    await verl.acquireServer('other');
    expect(await verl.acquireServer('a')).toBe(server);
  });

  it('releases by server id, or by server id and request id', async () => {
    await verl.addServers('s0');
    await verl.acquireServer('a');
    await verl.acquireServer('b');
    await verl.releaseServer('s0');
    expect(await verl.getStatus()).toEqual({ s0: 1 });
    await verl.releaseServer('s0', 'b');
    expect(await verl.getStatus()).toEqual({ s0: 0 });
  });

  it('ignores a release of an unknown or idle server, counts it, and never goes below zero', async () => {
    await verl.addServers('s0');
    const before = await unknownReleases();
    await verl.releaseServer('nobody');
    await verl.releaseServer('s0');
    await verl.releaseServer('s0', 'nobody');
    expect(await verl.getStatus()).toEqual({ s0: 0 });
    expect(await unknownReleases()).toBe(before + 3);
  });

  it('adds and removes servers, and moves the sessions of a removed server', async () => {
    await verl.addServers('s0');
    expect(await verl.acquireServer('a')).toBe('s0');
    await verl.addServers('s1');
    await verl.removeServers('s0', 'nobody');
    expect(await verl.acquireServer('a')).toBe('s1');
    expect(Object.keys(await verl.getStatus())).toEqual(['s1']);
    await verl.removeServers('s1');
    await expect(verl.acquireServer('a')).rejects.toThrow(VERL_NO_SERVER_MESSAGE);
  });

  it('keeps the count of a live server that is added again, and no late release ends another lease, unlike verl', async () => {
    await verl.addServers('s0');
    await verl.acquireServer('a');
    await verl.addServers('s0');
    expect(await verl.getStatus()).toEqual({ s0: 1 });
    await verl.removeServers('s0');
    await verl.addServers('s0');
    await verl.acquireServer('b');
    await verl.releaseServer('s0', 'a');
    expect(await verl.getStatus()).toEqual({ s0: 1 });
  });

  it('clears the sticky cache', async () => {
    await verl.addServers('s0', 's1');
    const server = await verl.acquireServer('a');
    await verl.releaseServer(server, 'a');
    expect(await verl.clearStickyCache()).toBe(1);
    expect(await verl.acquireServer('a')).not.toBe(server);
  });
});
