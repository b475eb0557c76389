import { Injectable } from '@nestjs/common';
import { BroomwagonError } from '@broomwagon/contracts';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { AdminApiConfig } from '../admin-api.config';

/** Limits requests per second. Each replica counts for itself. */
@Injectable()
export class RateLimits {
  private readonly ofTokens: RateLimiterMemory;
  private readonly ofAddresses: RateLimiterMemory;

  constructor({ rateLimitPerToken, rateLimitPerAddress }: AdminApiConfig) {
    this.ofTokens = new RateLimiterMemory({ points: rateLimitPerToken, duration: 1 });
    this.ofAddresses = new RateLimiterMemory({ points: rateLimitPerAddress, duration: 1 });
  }

  /** @throws BroomwagonError RATE_LIMITED */
  takeOfToken(id: string): Promise<void> {
    return take(this.ofTokens, id);
  }

  /** @throws BroomwagonError RATE_LIMITED */
  takeOfAddress(address: string): Promise<void> {
    return take(this.ofAddresses, address);
  }
}

async function take(limiter: RateLimiterMemory, key: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (refusal) {
    if (!(refusal instanceof RateLimiterRes)) throw refusal;
    throw new BroomwagonError('RATE_LIMITED', `More than ${limiter.points} requests in a second`, {
      retryAfterMs: refusal.msBeforeNext,
    });
  }
}
