import { Injectable } from '@nestjs/common';
import {
  type Epoch,
  newEpoch,
  type PoolName,
  type RequestId,
  type Segment,
  type UnservedReason,
  type SaveItem,
  type SaveManyRequest,
  type SaveRequest,
  type SaveResult,
  type WireError,
  type Claim,
  type ClaimReply,
  type ClaimRequest,
  type CompleteReply,
  type CompleteRequest,
  type FailReply,
  type FailRequest,
  type MoveTimes,
} from '@broomwagon/contracts';
import { FunctionRunner, transition } from '../library/function-runner';
import { createStoreClass } from '../library/store-of';

/** The attempt and worker epoch that fence every call about a request. */
export type AttemptFence = Pick<CompleteRequest, 'requestId' | 'attempt' | 'workerId' | 'workerEpoch'>;
/** A segment as an argument of scripts: its JSON, so that no number changes on the way, and its number of tokens. */
export interface SegmentArgs {
  segment?: string;
  tokens: number;
}

export interface ClaimArgs extends ClaimRequest {
  /** Inbox for the answer of a parked claim; without it the claim is never parked. */
  replyTo?: string;
}
export interface ClaimAnswer extends ClaimReply {
  /** The answer goes to `replyTo` later. */
  parked?: boolean;
}
export interface ClaimGrant extends ClaimReply {
  replyTo: string;
  /** The worker epoch is expired. */
  fenced?: boolean;
}

/** Times of a move, returned once with the first token after it. */
export interface MoveTimesAnswer {
  moveTimes?: MoveTimes;
}

export type SaveArgs = Omit<SaveRequest, 'segment'> & SegmentArgs;
/** Saves of attempts of one worker. */
export interface SaveManyArgs extends Omit<SaveManyRequest, 'saves'> {
  saves: (Omit<SaveItem, 'segment'> & SegmentArgs)[];
}
export type SaveAnswer = SaveResult & MoveTimesAnswer;

export type CompleteArgs = Omit<CompleteRequest, 'segment'> &
  SegmentArgs & {
    /** The payload store does not have the segment. */
    isMissing?: boolean;
    /** Stamp from before the check of the segment: a Redis that was set back since then may have lost the segment. */
    stamp?: string;
  };
export interface CompleteAnswer extends CompleteReply, MoveTimesAnswer, Pick<Claim, 'job' | 'roundId'> {
  /** Attempts that must stop, because their group has all its samples. */
  aborts: AttemptFence[];
  /** A job that could give out no requests can again, so parked claims may be granted. */
  madeRoom: boolean;
}

export type FailArgs = Omit<FailRequest, 'segment'> &
  SegmentArgs & {
    countsAsFailure: boolean;
    /** The engine did not serve the request, so this failure is no evidence against the request. */
    isUnserved?: boolean;
    /** Time for which the same servers may fail the request again, milliseconds; default: any. */
    deadlineMs?: number;
  };
export interface FailAnswer extends FailReply, MoveTimesAnswer, Pick<Claim, 'job' | 'roundId'> {
  /** Attempts that must stop, because their group has failed. */
  aborts: AttemptFence[];
  /** True when this call completed the round, with fewer groups. */
  roundCompleted: boolean;
  /** A job that could give out no requests can again, so parked claims may be granted. */
  madeRoom: boolean;
}

export interface ExpiredAnswer {
  returned: number;
  /** Number of returned attempts whose requests may be claimed again. */
  pending: number;
}

export class ClaimBounds {
  /** How long the answer to a claim is kept for a repeat, milliseconds. */
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

/** Maximum parked claims that one script answers. */
const GRANTS_PER_SCRIPT = 64;

/** The transitions of requests: one script each, safe to repeat. */
@Injectable()
export class RequestStore extends createStoreClass({
  /** One page of inboxes of overdue claims; these get an empty answer, or POOL_PAUSED. */
  expireClaims: transition<object, { replyTo: string[]; paused?: UnservedReason; more: boolean }>(
    'requests/expire-claims',
  ),
  save: transition<SaveArgs, SaveAnswer>('requests/save'),
  saveMany: transition<SaveManyArgs, { results: (SaveAnswer | { error: WireError })[] }>('requests/save-many'),
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
      const answer = await this.runner.run(claim, pool, { newAttempt: newEpoch(), ...args, ...this.bounds });
      if (!answer.again) return answer;
    }
  }

  /** One page of answers for parked claims; `more`: call again. */
  grantClaims(pool: PoolName): Promise<{ grants: ClaimGrant[]; more: boolean }> {
    const args = { keptMs: this.bounds.keptMs, maxGrants: GRANTS_PER_SCRIPT, newAttempt: newEpoch() };
    return this.runner.run(grantClaims, pool, args);
  }
}
