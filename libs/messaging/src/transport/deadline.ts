import { BroomwagonError } from '@broomwagon/contracts';
import type { MsgHdrs } from 'nats';
import { SENT_AT_HEADER, readTimeoutMs } from '../wire';

/**
 * Tolerated difference between the clocks of callers and services, milliseconds. A message is processed at most this
 * long after its timeout.
 */
export const CLOCK_TOLERANCE_MS = 2_000;

/** Why a message is not processed. */
export interface Refusal {
  error: BroomwagonError;
  /** True if the refusal compares the clocks of caller and service. The reply then has the time of the service. */
  isByClock: boolean;
}

/**
 * Refuses a message if its caller does not wait any more, because this process was stalled, or a broker, a buffer or a
 * silent link has held the message.
 * @param stalledMs time that the message may have waited for this process, milliseconds
 * @param nowMs time of the service, milliseconds since 1970
 * @returns undefined for a message that is processed
 */
export function refuseLate(headers: MsgHdrs | undefined, stalledMs: number, nowMs: number): Refusal | undefined {
  const timeoutMs = readTimeoutMs(headers);
  if (timeoutMs === Infinity) return undefined;
  if (stalledMs > 0 && timeoutMs <= stalledMs) {
    return { error: refused('was read after the deadline of its caller'), isByClock: false };
  }
  const passedMs = nowMs - Number(headers?.get(SENT_AT_HEADER) || Number.NaN);
  if (passedMs > timeoutMs + CLOCK_TOLERANCE_MS) {
    const times = `${passedMs} ms after it was sent with a timeout of ${timeoutMs} ms`;
    return { error: refused(`was read ${times}`, { passedMs, timeoutMs }), isByClock: true };
  }
  if (passedMs < -CLOCK_TOLERANCE_MS) {
    const times = `${-passedMs} ms before the time at which it was sent: the clock of the caller is fast`;
    return { error: refused(`was read ${times}`, { passedMs, timeoutMs }), isByClock: true };
  }
  return undefined;
}

function refused(why: string, details?: Record<string, unknown>): BroomwagonError {
  return new BroomwagonError('TIMEOUT', `The request ${why}; it was not processed`, { details });
}
