import { BroomwagonError } from '@broomwagon/contracts';
import type { MsgHdrs } from 'nats';
import { SENT_AT_HEADER, readTimeoutMs } from '../wire';

/** Clocks of callers and services may differ by this much, milliseconds: a message is not processed later than this. */
export const CLOCK_TOLERANCE_MS = 2_000;

/** Why a message is not processed. */
export interface Refusal {
  error: BroomwagonError;
  /** True when the clock of the caller has decided: the reply then has the time of the service. */
  isByClock: boolean;
}

/**
 * Refuses a message whose caller does not wait any more: the process of the service stood still, or a broker, a buffer
 * or a silent link held the message.
 * @param stalledMs how long the message may have waited for this process, milliseconds
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
