import { type Claim, type Epoch, buildSubject } from '@broomwagon/contracts';
import type { TypedClient } from '@broomwagon/messaging';
import { readToEnd } from '@broomwagon/testing';
import { formatPayloadRef } from '../../../../libs/state/src/payload/payload-ref';
import type { JobResult } from '../generator/jobs';
import type { BenchWorker } from '../generator/jobs';
import type { Stage } from '../stage';

/** Number of the generator's requests in flight. */
export const WINDOW = 128;
/** Number of `request.claim` calls in flight when a call claims many requests. */
const MANY_WINDOW = 8;
const PAGE = 128;
/** Time long enough that no round is orphaned during the measurement. */
const LONG_MS = 86_400_000;
const TOKENS = Buffer.from('tokens').toString('base64');

/** A claim and the worker that holds it. */
export interface HeldClaim {
  claim: Claim;
  worker: BenchWorker;
}
export interface RoundShape {
  neededGroups: number;
  groups: number;
  samples: number;
}

/** One round through NATS, step by step: the generator sends; this process only prepares requests and reads replies. */
export class RoundFlow {
  private trainerEpoch: Epoch = '';
  private claims = 0;

  constructor(
    private readonly stage: Stage,
    private readonly client: TypedClient,
    readonly pool: string,
    readonly job: string,
    private readonly workers: readonly BenchWorker[],
    private readonly shape: RoundShape,
    private readonly processIds: readonly number[],
  ) {}

  async open(): Promise<void> {
    const { neededGroups, groups } = this.shape;
    const opened = await this.client.call(this.pool, 'round.open', {
      job: this.job,
      roundId: 'round',
      planId: 'plan',
      step: 1,
      kind: 'short',
      neededGroups,
      takeGroups: 0,
      newGroups: groups,
      policy: { name: 'resume', overProvision: 2 },
      weightVersion: 0,
      orphanAfterMs: LONG_MS,
    });
    this.trainerEpoch = opened.trainerEpoch;
  }

  /** Submits the groups in pages of 128, one after the other, as a trainer does. */
  submit(): Promise<JobResult> {
    const { groups, samples } = this.shape;
    const bodies: string[] = [];
    for (let first = 0; first < groups; first += PAGE) {
      const page = Array.from({ length: Math.min(PAGE, groups - first) }, (_, offset) => ({
        groupId: `group-${first + offset}`,
        samples,
        maxTokens: 1_000,
        prompt: { text: `prompt ${first + offset}` },
      }));
      const { job, trainerEpoch } = this;
      bodies.push(JSON.stringify({ job, roundId: 'round', trainerEpoch, groups: page }));
    }
    return this.list('round.submit', bodies, { window: 1 });
  }

  /** Claims so many requests, `perCall` in each call. */
  async claim(count: number, perCall: number): Promise<{ result: JobResult; held: HeldClaim[] }> {
    const calls = Array.from({ length: Math.ceil(count / perCall) }, (_, index) => {
      const worker = this.workers[index % this.workers.length]!;
      const max = Math.min(perCall, count - index * perCall);
      return { worker, body: JSON.stringify({ claimId: `${this.job}-${this.claims++}`, ...worker, max }) };
    });
    const bodies = calls.map(({ body }) => body);
    const window = perCall > 1 ? MANY_WINDOW : WINDOW;
    const result = await this.list('request.claim', bodies, { window, keepReplies: true });
    const held = result.replies!.flatMap((reply, index) => {
      const { claims } = JSON.parse(reply) as { claims: Claim[] };
      return claims.map((claim) => ({ claim, worker: calls[index]!.worker }));
    });
    if (held.length !== count) throw new Error(`Only ${held.length} of ${count} requests were claimed`);
    return { result, held };
  }

  /** Stores the tokens of the claims, as workers do before they complete a request. */
  async store(held: readonly HeldClaim[]): Promise<void> {
    const puts = held.map(({ claim: { job, requestId, attempt } }) =>
      JSON.stringify({ job, requestId, name: `${attempt}`, chunkIndex: 0, chunkCount: 1, data: TOKENS }),
    );
    await this.list('payload.put', puts);
  }

  complete(held: readonly HeldClaim[]): Promise<JobResult> {
    return this.list('request.complete', completions(this.pool, held));
  }

  /** Confirms cuts: the tokens go with their groups to the long-tail queue. */
  requeue(held: readonly HeldClaim[]): Promise<JobResult> {
    const bodies = held.map((one) => buildBody(this.pool, one, { reason: 'aborted', retryable: true }));
    return this.list('request.fail', bodies);
  }

  /** Closes the round; its requests are folded in the background. */
  async close(): Promise<void> {
    const { job, trainerEpoch } = this;
    const round = { job, roundId: 'round', trainerEpoch };
    const { cursor } = await readToEnd((from) =>
      this.client.call(this.pool, 'round.results', { ...round, cursor: from }),
    );
    await this.client.call(this.pool, 'round.close', { ...round, cursor });
  }

  private list(
    operation: 'round.submit' | 'request.claim' | 'request.complete' | 'request.fail' | 'payload.put',
    bodies: string[],
    options: { window?: number; keepReplies?: boolean } = {},
  ): Promise<JobResult> {
    const subject = buildSubject(this.pool, operation);
    const { processIds } = this;
    return this.stage.generator.ask({ kind: 'list', subject, bodies, window: WINDOW, processIds, ...options });
  }
}

/** Bodies of `request.complete`, each with a segment. */
export function completions(pool: string, held: readonly HeldClaim[]): string[] {
  return held.map((one) => buildBody(pool, one, { finishReason: 'stop' }));
}

function buildBody(pool: string, { claim: { job, requestId, attempt }, worker }: HeldClaim, more: object): string {
  const segment = {
    attempt,
    serverId: 'server-0',
    serverEpoch: 'e1',
    weightVersion: 0,
    tokenCount: 100,
    ref: formatPayloadRef('redis', { pool, job, owner: requestId, name: `${attempt}` }),
  };
  return JSON.stringify({ requestId, attempt, ...worker, ...more, segment });
}
