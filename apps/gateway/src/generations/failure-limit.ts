import { isBroomwagonError } from '@broomwagon/contracts';
import type { GatewayConfig } from '../gateway.config';

/** When a generation ends whose calls fail one after the other, without a further token that is kept. */
export class FailureLimit {
  private failures = 0;
  /** Time of the last calls, if none of them has reached its engine. */
  private unreachedMs = 0;

  constructor(private readonly limits: Pick<GatewayConfig, 'maxEngineFailures' | 'noServerDeadlineMs'>) {}

  /** The response has more tokens than ever before. */
  clear(): void {
    this.failures = 0;
    this.unreachedMs = 0;
  }

  /**
   * Counts a failure. An engine that was not reached has not seen the request: only the time of these is limited.
   * @param error undefined: the engine has aborted the call by itself
   * @param calledMs time of the call, without the wait for a server, which has a deadline of its own
   */
  isReached(error: Error | undefined, calledMs: number): boolean {
    if (isBroomwagonError(error, 'ENGINE_UNREACHABLE')) {
      this.unreachedMs += calledMs;
    } else {
      this.unreachedMs = 0;
      this.failures += 1;
    }
    return this.unreachedMs > this.limits.noServerDeadlineMs || this.failures >= this.limits.maxEngineFailures;
  }
}
