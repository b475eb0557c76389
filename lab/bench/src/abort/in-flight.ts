import {
  LIMITS,
  workerCommandSubject,
  type AbortAttemptsCommand,
  type AbortRequestsRequest,
  type Claim,
} from '@broomwagon/contracts';
import type { TypedClient } from '@broomwagon/messaging';
import { roundTerms } from '@broomwagon/policies';
import { FunctionRunner, RequestStore, RoundStore } from '@broomwagon/state';
import type { BenchWorker } from '../generator/jobs';
import { KEY_PREFIX, type PoolState } from '../stage';

const SERVERS = 64;
const JOB = 'job';
const ROUND = { job: JOB, roundId: 'round' };

/** A running request or session, and the selector that aborts it. */
interface Target {
  requestId: string;
  selector: Partial<AbortRequestsRequest>;
}

/**
 * Thousands of requests that the counts show as running: each is claimed and has a lease. Their workers only confirm
 * aborts, at once and over NATS.
 */
export class InFlight {
  private readonly waiting = new Map<string, (atMs: number) => void>();
  private readonly acquireIds = new Map<string, string>();
  private readonly claims: Claim[] = [];
  private readonly sessions: string[] = [];

  private constructor(
    private readonly client: TypedClient,
    private readonly pool: string,
  ) {}

  /** @param counts requests of a round, and sessions of a caller that only routes, in flight */
  static async start(
    client: TypedClient,
    state: PoolState,
    pool: string,
    counts: { requests: number; sessions: number },
  ): Promise<InFlight> {
    const inFlight = new InFlight(client, pool);
    const workers = await state.fill(pool, SERVERS);
    for (const worker of workers) inFlight.listen(worker);
    await inFlight.submit(state, counts.requests);
    const requests = new RequestStore(new FunctionRunner(state.redis, KEY_PREFIX));
    for (let page = 0; inFlight.claims.length < counts.requests; page++) {
      await inFlight.run(state, requests, workers[page % workers.length]!, `page${page}`);
    }
    for (let index = 0; index < counts.sessions; index++) {
      await inFlight.route(state, workers[index % workers.length]!, `session-${index}`);
    }
    return inFlight;
  }

  /** Next target that was not aborted yet. */
  next(kind: 'request' | 'group' | 'session' | 'routed'): Target {
    if (kind === 'session' || kind === 'routed') {
      const requestId = this.sessions.pop()!;
      return { requestId, selector: kind === 'session' ? { sessionId: requestId } : { requestIds: [requestId] } };
    }
    const { requestId, groupId } = this.claims.pop()!;
    return { requestId, selector: kind === 'group' ? { groupId, job: JOB } : { requestIds: [requestId] } };
  }

  /** Resolves with the time (`performance.now`) at which the holder of the request gets the abort command. */
  waitForAbort(requestId: string): Promise<number> {
    return new Promise((resolve) => this.waiting.set(requestId, resolve));
  }

  /** Confirms each abort command of the worker at once. */
  private listen(worker: BenchWorker): void {
    this.client.messaging.subscribe(workerCommandSubject(this.pool, worker.workerId, 'abort'), (body) => {
      const atMs = performance.now();
      const { attempts, leases = [] } = body as unknown as AbortAttemptsCommand;
      for (const { requestId, attempt } of attempts) {
        this.told(requestId, atMs);
        const acquireId = this.acquireIds.get(requestId);
        this.client.send(this.pool, 'lb.release', { acquireId, outcome: 'aborted' });
        const confirmed = { requestId, attempt, ...worker, reason: 'aborted' as const, retryable: true };
        this.client.send(this.pool, 'request.fail', confirmed);
      }
      for (const { leaseId, requestId } of leases) {
        this.told(requestId, atMs);
        this.client.send(this.pool, 'lb.release', { leaseId, outcome: 'aborted' });
      }
    });
  }

  private told(requestId: string, atMs: number): void {
    this.waiting.get(requestId)?.(atMs);
    this.waiting.delete(requestId);
  }

  /** Submits groups of one request each. */
  private async submit(state: PoolState, count: number): Promise<void> {
    const rounds = new RoundStore(new FunctionRunner(state.redis, KEY_PREFIX));
    const policy = { name: 'resume', overProvision: 1 } as const;
    const shape = { kind: 'short', neededGroups: count, takeGroups: 0 } as const;
    const { trainerEpoch } = await rounds.open(this.pool, {
      ...ROUND,
      ...shape,
      ...roundTerms(policy, shape, {}),
      planId: 'plan',
      step: 1,
      newGroups: count,
      policy,
      weightVersion: 0,
      orphanAfterMs: 86_400_000,
    });
    for (let first = 0; first < count; first += LIMITS.page) {
      const groups = Array.from({ length: Math.min(LIMITS.page, count - first) }, (_, offset) => ({
        groupId: `group-${first + offset}`,
        digest: 'digest',
        samples: 1,
        maxTokens: 1_000,
        promptRef: `redis~${this.pool}~${ROUND.job}~prompt~prompt`,
        sampling: '{}',
      }));
      await rounds.submit(this.pool, { ...ROUND, trainerEpoch }, groups);
    }
  }

  /** Claims a page of requests, takes a lease for each, and reports each as running. */
  private async run(state: PoolState, requests: RequestStore, worker: BenchWorker, claimId: string): Promise<void> {
    const { claims } = await requests.claim(this.pool, { claimId, ...worker, max: LIMITS.claimsPerCall });
    if (claims.length === 0) throw new Error('Nothing to claim');
    await state.leases.acquire(
      this.pool,
      claims.map(({ requestId }) => ({ acquireId: `of:${requestId.replaceAll('/', ':')}`, requestId, ...worker })),
      true,
    );
    for (const { requestId, attempt } of claims) {
      this.acquireIds.set(requestId, `of:${requestId.replaceAll('/', ':')}`);
      await requests.save(this.pool, { requestId, attempt, ...worker, tokens: 0 });
    }
    this.claims.push(...claims);
  }

  private async route(state: PoolState, worker: BenchWorker, sessionId: string): Promise<void> {
    await state.leases.acquire(this.pool, [{ acquireId: sessionId, requestId: sessionId, sessionId, ...worker }], true);
    this.sessions.push(sessionId);
  }
}
