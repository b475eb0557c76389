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
import { FunctionRunner, transition } from '../library/function-runner';
import { storeOf } from '../library/store-of';
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

/** Parked claims answered by one script. */
const GRANTS_PER_SCRIPT = 64;

/** The transitions of requests: one script each, safe to repeat. */
@Injectable()
export class RequestStore extends storeOf({
  /** One page of inboxes whose claims have waited long enough; they get an empty answer, or POOL_PAUSED. */
  expireClaims: transition<object, { replyTo: string[]; paused?: UnservedReason; more: boolean }>(
    'requests/expire-claims',
  ),
  save: transition<SaveArgs, SaveReply>('requests/save'),
  /** All segments of a request. */
  segments: transition<{ requestId: RequestId }, { segments: Segment[] }>('requests/segments'),
  complete: transition<CompleteArgs, CompleteAnswer>('requests/complete'),
  fail: transition<FailArgs, FailAnswer>('requests/fail'),
  /** Returns one page of attempts of expired worker epochs; `more`: call again. */
  expiredAttempts: transition<object, ExpiredAnswer & { more: boolean }>('requests/expired-attempts'),
}) {
  constructor(
    runner: FunctionRunner,
    private readonly bounds: ClaimBounds = new ClaimBounds(),
  ) {
    super(runner);
  }

  /** Takes pending requests, or parks the call. @throws FENCED, QUEUE_FULL */
  async claim(pool: PoolName, args: ClaimArgs): Promise<ClaimAnswer> {
    for (;;) {
      const answer = await this.runner.run(claim, pool, { ...args, newAttempt: newEpoch(), ...this.bounds });
      if (!answer.again) return answer;
    }
  }

  /** One page of answers for parked claims; `more`: call again. */
  grantClaims(pool: PoolName): Promise<{ grants: ClaimGrant[]; more: boolean }> {
    const args = { keptMs: this.bounds.keptMs, maxGrants: GRANTS_PER_SCRIPT, newAttempt: newEpoch() };
    return this.runner.run(grantClaims, pool, args);
  }
}
