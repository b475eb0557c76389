import { Injectable } from '@nestjs/common';
import {
  type ExplainedPart,
  type ExplainRoundReply,
  type ExplainRoundRequest,
  isBroomwagonError,
  type OperationName,
  type PoolName,
  type ReplyOf,
  type RequestOf,
  type RequestStatus,
  type UnreadRoundPart,
} from '@broomwagon/contracts';
import { TypedClient } from '@broomwagon/messaging';
import { CALL_MS, computeMedian, Overview } from '../overview';
import { SharedReads } from '../shared-reads';
import { explainRound } from './explain-round';
import { isOpen } from './round-snapshot';

/** Time in which requests share one reply, milliseconds: a large round has many requests. */
const SHARED_MS = 2_000;
/** Maximum requests of a round that are read. */
const MAX_REQUESTS = 16_384;

/** Reads the explanation of a round. A part that does not answer hides no other part. */
@Injectable()
export class RoundExplanation {
  private readonly shared = new SharedReads<ExplainRoundReply>(SHARED_MS);

  constructor(
    private readonly client: TypedClient,
    private readonly overview: Overview,
  ) {}

  /** @throws BroomwagonError JOB_NOT_FOUND, ROUND_NOT_FOUND */
  read(pool: PoolName, request: ExplainRoundRequest): Promise<ExplainRoundReply> {
    const { job, roundId } = request;
    return this.shared.get(`${pool}/${job}/${roundId}`, () => this.explain(pool, { job, roundId }));
  }

  private async explain(pool: PoolName, named: ExplainRoundRequest): Promise<ExplainRoundReply> {
    const unread: UnreadRoundPart[] = [];
    const read = <Value>(part: ExplainedPart, value: Promise<Value>): Promise<Value | undefined> =>
      value.catch((cause: unknown) => {
        if (isBroomwagonError(cause, 'JOB_NOT_FOUND') || isBroomwagonError(cause, 'ROUND_NOT_FOUND')) throw cause;
        const code = isBroomwagonError(cause) ? cause.code : 'UNAVAILABLE';
        unread.push({ part, code, reason: (cause as Error).message });
        return undefined;
      });
    const [reading, known, weights] = await Promise.all([
      this.overview.readPool(pool),
      read('round', this.readRound(pool, named)),
      read('weights', this.call(pool, 'weights.status', {})),
    ]);
    const isWaiting = known !== undefined && isOpen(known.round);
    const requests = isWaiting ? await read('requests', this.listRequests(pool, named)) : undefined;
    return explainRound({ ...named, ...reading, ...known, ...requests, sync: weights?.sync, unread });
  }

  private async readRound(pool: PoolName, named: ExplainRoundRequest) {
    const [round, { rounds }] = await Promise.all([
      this.call(pool, 'round.status', named),
      this.call(pool, 'round.list', { job: named.job }),
    ]);
    return { round, medianMs: computeMedian(rounds, round) };
  }

  private async listRequests(pool: PoolName, { job, roundId }: ExplainRoundRequest) {
    const requests: RequestStatus[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.call(pool, 'request.list', { job, roundId, cursor });
      requests.push(...page.requests);
      ({ cursor } = page);
    } while (cursor !== undefined && requests.length < MAX_REQUESTS);
    return { requests, isPartial: cursor !== undefined };
  }

  private call<Name extends OperationName>(pool: PoolName, name: Name, body: RequestOf<Name>): Promise<ReplyOf<Name>> {
    return this.client.call(pool, name, body, { timeoutMs: CALL_MS });
  }
}
