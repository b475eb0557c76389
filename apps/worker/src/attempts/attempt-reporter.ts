import { Injectable, Logger } from '@nestjs/common';
import {
  cutText,
  type CompleteRequest,
  isBroomwagonError,
  type ErrorCode,
  type FailReason,
  type FailRequest,
  outages,
  type Segment,
} from '@broomwagon/contracts';
import { withoutQuote } from '@broomwagon/engines';
import { classifyFailure, ControlPlane, type FailureKind, isExpiredEpoch, type Lease } from '@broomwagon/generation';
import type { RetryOptions } from '@broomwagon/messaging';
import type { AttemptOutcome } from '../worker-metrics';
import { WorkerConfig } from '../worker.config';
import type { Attempt } from './attempt';
import { CompleteCalls } from './complete-calls';

/** Maximum length of the message of `request.fail`, characters. */
const MAX_MESSAGE_LENGTH = 1_000;
/** Maximum INTERNAL answers to the report of an end. Then the attempt is reported as `unclaimed`. */
const MAX_INTERNAL = 3;
/** Maximum number of times that lost tokens are stored again. */
const MAX_STORED_AGAIN = 3;
/** Errors for a request that does not exist any more, for example because its round was closed. */
const GONE = new Set<ErrorCode>(['ROUND_CLOSED', 'ROUND_NOT_FOUND', 'REQUEST_NOT_FOUND', 'JOB_NOT_FOUND']);

/** Reasons that are logged: they count as failures of the request. Other reasons may be frequent. */
const COUNTED = new Set<FailReason>(['engine-error', 'engine-rejected', 'payload']);

/** Whether the error means that the request does not exist any more. */
export function isGone(error: unknown): boolean {
  return isBroomwagonError(error) && GONE.has(error.code);
}

/** Reason why an attempt failed, for `request.fail`. */
export interface Failure {
  reason: FailReason;
  retryable: boolean;
  /** Tokens of the attempt, if not all of them could be stored, or were sent by the engine. */
  lostTokens?: number;
  /** Reference of a segment of the claim that the payload store does not have. */
  missingRef?: string;
  message?: string;
  /** Error of the engine, whose text may have parts of the prompt. */
  cause?: Error;
}

/** The failure of a request that the engine has ended by itself. */
export function toEngineAbort({ serverId }: Lease): Failure {
  return { reason: 'engine-abort', retryable: true, message: `${serverId} ended the request without an abort` };
}

const FAILURES: Record<FailureKind, Pick<Failure, 'reason' | 'retryable'>> = {
  refused: { reason: 'engine-rejected', retryable: false },
  'not-served': { reason: 'no-server', retryable: true },
  wrong: { reason: 'engine-rejected', retryable: true },
  failed: { reason: 'engine-error', retryable: true },
};

/** The failure of a call. */
export function toFailure(error: Error): Failure {
  return { ...FAILURES[classifyFailure(error)], message: error.message, cause: error };
}

/**
 * Reports how an attempt ended. Repeats the call until it is answered or its deadline passes. If the report is refused,
 * or answered INTERNAL several times, reports the attempt as `unclaimed`: its request continues with the tokens of the
 * last partial save. The coordinator limits the number of such ends. Never throws.
 */
@Injectable()
export class AttemptReporter {
  private readonly logger = new Logger(AttemptReporter.name);

  constructor(
    private readonly controlPlane: ControlPlane,
    private readonly completes: CompleteCalls,
    private readonly config: WorkerConfig,
  ) {}

  /** @param storeAgain stores the tokens again, called if the payload store has lost the tokens */
  async complete(
    attempt: Attempt,
    end: Pick<CompleteRequest, 'finishReason' | 'engineFinishReason'>,
    segment?: Segment,
    storeAgain?: () => Promise<Segment | undefined>,
  ): Promise<AttemptOutcome> {
    const { identity, run } = attempt;
    return this.report(attempt, 'finished', async () => {
      let stored = segment;
      for (let losses = 1; ; losses += 1) {
        try {
          const body = Object.assign({}, identity, end, { segment: stored, run });
          return await this.completes.complete(body, this.options);
        } catch (error) {
          if (!isBroomwagonError(error, 'PAYLOAD_NOT_FOUND') || !storeAgain || losses > MAX_STORED_AGAIN) throw error;
          this.logger.warn(attempt.ids, 'The tokens are missing in the payload store and are stored again');
          stored = await storeAgain();
        }
      }
    });
  }

  async fail(attempt: Attempt, failure: Failure, segment?: Segment): Promise<AttemptOutcome> {
    const { reason, retryable, lostTokens, missingRef } = failure;
    const message = failure.message && cutText(failure.message, MAX_MESSAGE_LENGTH);
    const { generatedMs, run } = attempt;
    const body = { ...attempt.identity, reason, retryable, lostTokens, missingRef, message, segment, generatedMs, run };
    const outcome = reason === 'unclaimed' ? 'lost' : reason;
    if (COUNTED.has(reason) && !outages.explains(failure.cause)) {
      this.logger.warn({ ...attempt.ids, reason }, `The attempt failed: ${message && withoutQuote(message)}`);
    }
    return this.report(attempt, outcome, () => this.sayFailed(body));
  }

  private get options(): RetryOptions {
    return { deadlineMs: this.config.transitionDeadlineMs, maxInternal: MAX_INTERNAL };
  }

  private sayFailed(body: FailRequest): Promise<unknown> {
    return this.controlPlane.callWithRetry('request.fail', body, this.options);
  }

  private async report(
    attempt: Attempt,
    outcome: AttemptOutcome,
    say: () => Promise<unknown>,
  ): Promise<AttemptOutcome> {
    if (attempt.isExpired) return 'fenced';
    try {
      await say();
    } catch (error) {
      if (isExpiredEpoch(error)) return 'fenced';
      if (isGone(error)) return 'gone';
      this.logger.error({ ...attempt.ids, outcome, err: error }, 'The end was not accepted');
      if (!isBroomwagonError(error) || !error.retryable || error.code === 'INTERNAL') await this.sayUnclaimed(attempt);
      return 'lost';
    }
    return outcome;
  }

  /** Reports the attempt as `unclaimed`. If this call fails too, the next reconciliation returns the attempt. */
  private async sayUnclaimed(attempt: Attempt): Promise<void> {
    const body = { ...attempt.identity, reason: 'unclaimed' as const, retryable: true };
    await this.sayFailed(body).catch((error: unknown) =>
      this.logger.error({ ...attempt.ids, err: error }, 'The attempt was not returned'),
    );
  }
}
