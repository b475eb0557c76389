import { LIMITS } from '@broomwagon/contracts';
import {
  InspectionStore,
  ROUTING_BOUNDS,
  RoutingStore,
  ServerStore,
  WeightStore,
  type AcquireEntry,
} from '@broomwagon/state';
import type { BenchWorker } from '../generator/jobs';
import type { PoolState } from '../stage';
import type { TimedRunner } from './timed-runner';

const PAGE: number = LIMITS.page;

/** A pool with very many servers, leases and sessions. */
export class RoutingCases {
  private readonly routing;
  private readonly servers;
  private readonly weights;
  private readonly inspections;
  private acquires = 0;

  constructor(
    private readonly runner: TimedRunner,
    private readonly pool: string,
    private readonly size: { servers: number; leases: number },
  ) {
    this.routing = new RoutingStore(runner, { ...ROUTING_BOUNDS, rememberMs: 1 });
    this.servers = new ServerStore(runner);
    this.weights = new WeightStore(runner);
    this.inspections = new InspectionStore(runner);
  }

  async run(state: PoolState): Promise<void> {
    const { pool, runner, routing } = this;
    const { servers, leases } = this.size;
    const workers = await state.fill(pool, servers);
    await state.hold(pool, workers, leases, true);
    await runner.measure(`${servers} servers, ${leases} leases`, async () => {
      for (let again = 0; again < 3; again++) {
        await this.acquireMany(workers[0]!, {});
        await this.acquireMany(workers[0]!, { minWeightVersion: 0 });
        await this.acquireMany(workers[0]!, { explain: true }, LIMITS.explainsPerCall);
        await routing.status(pool);
        await routing.sweep(pool);
        await routing.grantWaiters(pool);
        await routing.expireWaiters(pool);
        await routing.expireWorkers(pool, 10_000);
        await routing.evictSessions(pool, 1);
        await routing.heartbeatWorker(pool, workers[0]!.workerId, workers[0]!.workerEpoch);
        await this.inspections.workers(pool);
        await this.inspections.leases(pool, {});
        await this.servers.rescore(pool, '0');
        await this.servers.warm(pool);
        await this.servers.endDrains(pool, 0);
      }
      let cursor = '0';
      for (let page = 0; page < 4; page++) {
        const listed = await routing.listServers(pool, cursor);
        await routing.heardFrom(
          pool,
          listed.servers.slice(0, PAGE).map(({ serverId }) => serverId),
        );
        ({ cursor } = listed);
      }
      await this.changeWeights();
      await routing.deregisterWorker(pool, workers[0]!.workerId, workers[0]!.workerEpoch);
      for (let page = 0; page < 8; page++) await routing.sweep(pool);
    });
  }

  private async acquireMany(worker: BenchWorker, wish: Partial<AcquireEntry>, count = PAGE): Promise<void> {
    const items = Array.from({ length: count }, () => ({
      acquireId: `bench-${this.acquires++}`,
      requestId: `job/group-${this.acquires}/0`,
      ...worker,
      ...wish,
    }));
    await this.routing.acquire(this.pool, items);
    await this.routing.release(
      this.pool,
      items.map(({ acquireId }) => ({ acquireId })),
    );
  }

  private async changeWeights(): Promise<void> {
    const { pool, weights } = this;
    const syncId = 'sync';
    await weights.begin(pool, { syncId, version: 1, mode: 'abort', deadlineMs: 600_000 });
    for (let cursor = '0', page = 0; page < 4; page++) {
      ({ cursor } = await weights.engineSteps(pool, cursor));
      await weights.status(pool, syncId, '0');
    }
    await weights.end(pool, { syncId, outcome: 'rolled-back', reason: 'asked' });
  }
}
