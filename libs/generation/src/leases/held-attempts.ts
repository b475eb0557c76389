import type { AttemptId } from '@broomwagon/contracts';
import type { LeasedCall } from './leased-call';

/** The attempts of claimed requests that a worker runs. */
export abstract class HeldAttempts {
  abstract readonly size: number;
  abstract list(): { key: string; stop: LeasedCall['stop'] }[];
  abstract has(requestId: string, attempt: AttemptId): boolean;
  /** Stops and removes all attempts of an expired epoch. */
  abstract forgetAll(): void;
}

/** No attempts, for a worker that claims no requests. */
export class NoAttempts extends HeldAttempts {
  readonly size = 0;
  list = () => [];
  has = () => false;
  forgetAll = () => undefined;
}
