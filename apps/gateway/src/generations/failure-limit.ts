import { isBroomwagonError } from '@broomwagon/contracts';
import type { GatewayConfig } from '../gateway.config';

/** When a generation ends whose calls fail one after the other, without a further token that is kept. */
export class FailureLimit {
  private failures = 0;
  private sinceMs: number | undefined;

  constructor(private readonly limits: Pick<GatewayConfig, 'maxEngineFailures' | 'noServerDeadlineMs'>) {}

  /** The response has more tokens than ever before. */
  clear(): void {
    this.failures = 0;
    this.sinceMs = undefined;
  }

  /**
   * Counts a failure. An engine that was not reached has not seen the request: only the time of these is limited.
   * @param error undefined: the engine has aborted the call by itself
   */
  isReached(error: Error | undefined): boolean {
    this.sinceMs ??= performance.now();
    if (!isBroomwagonError(error, 'ENGINE_UNREACHABLE')) this.failures += 1;
    const isLate = performance.now() - this.sinceMs > this.limits.noServerDeadlineMs;
    return isLate || this.failures >= this.limits.maxEngineFailures;
  }
}
