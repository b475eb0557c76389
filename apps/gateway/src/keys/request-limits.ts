import { BroomwagonError } from '@broomwagon/contracts';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';

/** Limits of requests of keys per minute, counted in this replica. */
export class RequestLimits {
  private readonly limiters = new Map<number, RateLimiterMemory>();

  /** @param most maximum requests of the key in a minute @throws BroomwagonError RATE_LIMITED */
  async take(tokenId: string, most: number): Promise<void> {
    const limiter = this.limiters.get(most) ?? new RateLimiterMemory({ points: most, duration: 60 });
    this.limiters.set(most, limiter);
    try {
      await limiter.consume(tokenId);
    } catch (refusal) {
      if (!(refusal instanceof RateLimiterRes)) throw refusal;
      throw new BroomwagonError('RATE_LIMITED', `The key may send ${most} requests in a minute`, {
        retryAfterMs: refusal.msBeforeNext,
      });
    }
  }
}
