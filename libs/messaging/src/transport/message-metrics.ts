import type { ErrorCode } from '@broomwagon/contracts';

/** Outcome of a message: few values, for a metric label. */
export type MessageOutcome = 'OK' | 'PARKED' | ErrorCode;

/**
 * Counters of the transport. The transport calls these methods for each message, so they must be cheap and must not
 * throw.
 */
export interface MessageMetrics {
  /** @param pattern declared subject of the handler, for few values of the label */
  handled(pattern: string, outcome: MessageOutcome, durationSeconds: number): void;
  /** Sets the number of messages that are being handled. */
  inFlight(count: number): void;
}

export const NO_METRICS: MessageMetrics = { handled: () => undefined, inFlight: () => undefined };
