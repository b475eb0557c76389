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
  BroomwagonError,
  type CompleteItem,
  type CompleteManyRequest,
  type CompleteReply,
  type CompleteRequest,
  type FailReply,
  type FailRequest,
  type MoveTimes,
} from '@broomwagon/contracts';
import { FunctionRunner, transition } from '../library/function-runner';
import { splitPages } from '../library/lists';
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

export type CompleteItemArgs = Omit<CompleteItem, 'segment'> &
  SegmentArgs & {
    /** The payload store does not have the segment. */
    isMissing?: boolean;
  };
/** Finished samples of one worker. */
export interface CompleteManyArgs extends Omit<CompleteManyRequest, 'completes'> {
  completes: CompleteItemArgs[];
  /** Stamp from before the check of the segments: a Redis that was set back since then may have lost a segment. */
  stamp?: string;
}
export type CompleteArgs = CompleteItemArgs & Omit<CompleteManyArgs, 'completes'>;
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
const completeMany = transition<CompleteManyArgs, { results: (CompleteAnswer | { error: WireError })[] }>(
  'requests/complete-many',
);
const grantClaims = transition<
  { keptMs: number; maxGrants: number; newAttempt: Epoch },
  { grants: ClaimGrant[]; more: boolean }
>('requests/grant-claims');

/** Maximum samples that one script finishes: Redis takes about 0.1 ms for a sample that completes its group. */
const COMPLETES_PER_SCRIPT = 32;
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

  /** Finishes samples of one worker. @returns answer or error of each sample, in the order of the samples */
  async completeMany(pool: PoolName, args: CompleteManyArgs): Promise<(CompleteAnswer | BroomwagonError)[]> {
    // All pages are sent at once, in their order.
    const pages = await Promise.all(
      splitPages(args.completes, COMPLETES_PER_SCRIPT).map((completes) =>
        this.runner.run(completeMany, pool, { ...args, completes }),
      ),
    );
    const results = pages.flatMap((page) => page.results);
    return results.map((result) => ('error' in result ? this.runner.toError(pool, result.error) : result));
  }

  /** Finishes one sample. @throws BroomwagonError as listed in requests/complete-many.lua, or UNAVAILABLE */
  async complete(pool: PoolName, { workerId, workerEpoch, stamp, ...item }: CompleteArgs): Promise<CompleteAnswer> {
    const [answer] = await this.completeMany(pool, { workerId, workerEpoch, stamp, completes: [item] });
    if (answer instanceof BroomwagonError) throw answer;
    return answer!;
  }

  /** One page of answers for parked claims; `more`: call again. */
  grantClaims(pool: PoolName): Promise<{ grants: ClaimGrant[]; more: boolean }> {
    const args = { keptMs: this.bounds.keptMs, maxGrants: GRANTS_PER_SCRIPT, newAttempt: newEpoch() };
    return this.runner.run(grantClaims, pool, args);
  }
}
