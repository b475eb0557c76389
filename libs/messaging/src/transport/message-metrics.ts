import type { ErrorCode } from '@broomwagon/contracts';

/** How the handling of a message ended. Few values, so it may be a metric label. */
export type MessageOutcome = 'OK' | 'PARKED' | ErrorCode;

/** Counters of the transport for each message. Called on the hot path: must be cheap and must not throw. */
export interface MessageMetrics {
  /** @param pattern subject as declared by the handler, so its values are few */
  handled(pattern: string, outcome: MessageOutcome, durationSeconds: number): void;
  /** How many messages are being handled now. */
  inFlight(count: number): void;
}

/** Counts nothing. */
export const NO_METRICS: MessageMetrics = { handled: () => undefined, inFlight: () => undefined };
