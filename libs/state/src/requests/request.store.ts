import { Injectable } from '@nestjs/common';
import {
  type SaveReply,
  type Epoch,
  newEpoch,
  type PoolName,
  type RequestId,
  type Segment,
  type UnservedReason,
} from '@broomwagon/contracts';
import { transition, FunctionRunner } from '../library/function-runner';
import type {
  SaveArgs,
  ClaimAnswer,
  ClaimArgs,
  ClaimGrant,
  CompleteAnswer,
  CompleteArgs,
  FailAnswer,
  FailArgs,
  ExpiredAnswer,
} from './request.types';

/** Bounds of the claims of a pool. */
export class ClaimBounds {
  /** How long the answer of a claim is kept for a repeat, milliseconds. */
  keptMs = 60_000;
  /** Claims that may be parked at once. */
  maxWaiters = 100_000;
}

const claim = transition<ClaimArgs & ClaimBounds & { newAttempt: Epoch }, ClaimAnswer & { again?: boolean }>(
  'requests/claim',
);
const grantClaims = transition<
  { keptMs: number; maxGrants: number; newAttempt: Epoch },
  { grants: ClaimGrant[]; more: boolean }
>('requests/grant-claims');
const expireClaims = transition<object, { replyTo: string[]; paused?: UnservedReason; more: boolean }>(
  'requests/expire-claims',
);
const save = transition<SaveArgs, SaveReply>('requests/save');
const complete = transition<CompleteArgs, CompleteAnswer>('requests/complete');
const fail = transition<FailArgs, FailAnswer>('requests/fail');
const segments = transition<{ requestId: RequestId }, { segments: Segment[] }>('requests/segments');
const expiredAttempts = transition<object, ExpiredAnswer & { more: boolean }>('requests/expired-attempts');

/** Parked claims answered by one script. */
const GRANTS_PER_SCRIPT = 64;

/**
 * The transitions of requests: one script each, safe to repeat. Every method throws BroomwagonError with the codes its
 * script names, or UNAVAILABLE.
 */
@Injectable()
export class RequestStore {
  constructor(
    private readonly scripts: FunctionRunner,
    private readonly bounds: ClaimBounds = new ClaimBounds(),
  ) {}

  /** Takes pending requests, or parks the call. @throws FENCED, QUEUE_FULL */
  async claim(pool: PoolName, args: ClaimArgs): Promise<ClaimAnswer> {
    for (;;) {
      const answer = await this.scripts.run(claim, pool, {
        ...args,
        newAttempt: newEpoch(),
        ...this.bounds,
      });
      if (!answer.again) return answer;
    }
  }

  /** All segments of a request. @throws REQUEST_NOT_FOUND */
  async segments(pool: PoolName, requestId: RequestId): Promise<Segment[]> {
    return (await this.scripts.run(segments, pool, { requestId })).segments;
  }

  /** One page of answers for parked claims; `more`: call again. */
  grantClaims(pool: PoolName): Promise<{ grants: ClaimGrant[]; more: boolean }> {
    const args = { keptMs: this.bounds.keptMs, maxGrants: GRANTS_PER_SCRIPT, newAttempt: newEpoch() };
    return this.scripts.run(grantClaims, pool, args);
  }

  /** One page of inboxes whose claims have waited long enough; they get an empty answer, or POOL_PAUSED. */
  expireClaims(pool: PoolName): Promise<{ replyTo: string[]; paused?: UnservedReason; more: boolean }> {
    return this.scripts.run(expireClaims, pool, {});
  }

  /** @throws FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED */
  save(pool: PoolName, args: SaveArgs): Promise<SaveReply> {
    return this.scripts.run(save, pool, args);
  }

  /** @throws FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED */
  complete(pool: PoolName, args: CompleteArgs): Promise<CompleteAnswer> {
    return this.scripts.run(complete, pool, args);
  }

  /** @throws FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED */
  fail(pool: PoolName, args: FailArgs): Promise<FailAnswer> {
    return this.scripts.run(fail, pool, args);
  }

  /** Returns one page of attempts of expired worker epochs; `more`: call again. */
  expiredAttempts(pool: PoolName): Promise<ExpiredAnswer & { more: boolean }> {
    return this.scripts.run(expiredAttempts, pool, {});
  }
}
