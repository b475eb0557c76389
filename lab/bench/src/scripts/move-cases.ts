import { LIMITS, type Claim } from '@broomwagon/contracts';
import { AbortStore, LeaseStore, MoveStore, RequestStore, WorkerStore } from '@broomwagon/state';
import type { BenchWorker } from '../generator/jobs';
import type { TimedRunner } from './timed-runner';

const PAGE: number = LIMITS.page;
const KEPT_MS = 600_000;
const INPUT = 'requests that run under leases';

/** Measures moves of running requests and leases, and the end of moves without a confirmation. */
export class MoveCases {
  private readonly moves;
  private readonly requests;
  private readonly leases;
  private readonly workers;
  private readonly aborts;
  private repeat = 0;

  constructor(
    private readonly runner: TimedRunner,
    private readonly pool: string,
  ) {
    this.moves = new MoveStore(runner);
    this.requests = new RequestStore(runner);
    this.leases = new LeaseStore(runner);
    this.workers = new WorkerStore(runner);
    this.aborts = new AbortStore(runner);
  }

  /** @param claims claims of the worker, all of one job */
  async run(worker: BenchWorker, claims: readonly Claim[]): Promise<void> {
    const { pool, moves } = this;
    this.repeat += 1;
    const leases = claims.map(({ requestId }, index) => ({
      acquireId: `m${this.repeat}-${index}`,
      requestId,
      ...worker,
    }));
    const others = claims.map((_, index) => ({ acquireId: `o${this.repeat}-${index}`, requestId: 'call', ...worker }));
    await this.leases.acquire(pool, leases);
    const { results } = await this.leases.acquire(pool, others);
    for (const { requestId, attempt } of claims) {
      await this.requests.save(pool, { requestId, attempt, ...worker, tokens: 0, serverId: 'server-1' });
    }
    await this.runner.measure(INPUT, async () => {
      await moves.calls(pool);
      await moves.settings(pool, { settings: JSON.stringify({ tiers: 's'.repeat(2_000) }), ifVersion: 0 });
      const planned = [
        ...claims.map(({ requestId, attempt }) => ({ requestId, attempt, toServerId: 'server-2' })),
        ...results.flatMap((result, index) =>
          'seq' in result ? [{ leaseId: `${result.seq}.${others[index]!.acquireId}`, toServerId: 'server-2' }] : [],
        ),
      ];
      const plan = { planId: `plan-${this.repeat}`, keptMs: KEPT_MS };
      await moves.save(pool, { ...plan, moves: planned, summary: '{}', digest: 'd' });
      for (let more = true; more;) ({ more } = await moves.send(pool, { ...plan, maxMovesPerRequest: 10 }));
      await moves.status(pool, { planId: plan.planId, cursor: 0, limit: PAGE });
      await moves.repeat(pool, { cursor: 0, deadlineMs: KEPT_MS });
      await moves.repeatLeases(pool, { deadlineMs: KEPT_MS });
      const attempts = claims.map(({ requestId, attempt }) => ({ requestId, attempt, fenced: false }));
      const leaseIds = results.flatMap((result, index) =>
        'seq' in result ? [`${result.seq}.${others[index]!.acquireId}`] : [],
      );
      const abortId = `overdue-${this.repeat}`;
      await this.aborts.begin(pool, { abortId, selector: { job: claims[0]!.job }, reason: 'bench', keptMs: 1 });
      for (let more = true; more;) ({ more } = await this.aborts.select(pool, { abortId }));
      await this.aborts.endOverdue(pool, { attempts, leaseIds });
    });
  }

  /** Measures the end of a worker with all its leases and attempts. */
  async endWorker(worker: BenchWorker): Promise<void> {
    const { pool, leases, workers, requests } = this;
    await this.runner.measure('a worker with all it may have', async () => {
      await workers.deregister(pool, worker);
      for (let more = true; more;) ({ more } = await requests.expiredAttempts(pool));
    });
    while ((await leases.sweep(pool)).more);
  }
}
