import type { IncomingHttpHeaders } from 'node:http';
import { Injectable } from '@nestjs/common';
import { BroomwagonError, type Integer, type Role, type TokenStatus } from '@broomwagon/contracts';
import { CredentialStore, TokenCache } from '@broomwagon/state';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { GatewayConfig } from '../gateway.config';
import { decodeUtf8 } from '../fields/read-fields';
import { refuseOtherSites } from './other-sites';

/** `Bearer <token>`, or `Bearer <token>.<session>` for clients that can set only their key. */
const BEARER = /^Bearer ([\w-]{1,128})(?:\.(.+))?$/i;

/** The caller of a request, identified by its key. */
export interface Caller {
  /** Id of the token; empty without keys. */
  tokenId: string;
  /** Role of the token; `admin` without keys. */
  role: Role;
  /** Maximum generations of the key at the same time. */
  maxGenerations?: Integer;
  /** Session in the path or in the key. */
  sessionId?: string;
  /** Whether the session is in the path. */
  isPathSession?: boolean;
  /** Field `parent_session_id` of the body, unchecked: the session that has started the session of the request. */
  parentSessionId?: unknown;
}

/** Checks the keys of clients: tokens of the credential store with any role except `viewer`. */
@Injectable()
export class ApiKeys {
  private readonly cache = new TokenCache<TokenStatus>();
  private readonly limits = new RequestLimits();

  constructor(
    private readonly credentials: CredentialStore,
    private readonly config: GatewayConfig,
  ) {}

  /**
   * Without keys: refuses web pages of other sites, and host names of other sites.
   * @throws BroomwagonError FORBIDDEN
   */
  checkSite(headers: IncomingHttpHeaders): void {
    const { apiKeys, publicUrl, corsOrigins } = this.config;
    if (apiKeys === 'off') refuseOtherSites(headers, publicUrl, corsOrigins);
  }

  /** @throws BroomwagonError UNAUTHENTICATED, FORBIDDEN, RATE_LIMITED, UNAVAILABLE */
  async identify(headers: IncomingHttpHeaders): Promise<Caller> {
    // Clients of Anthropic send their key in another header.
    const { authorization = `Bearer ${String(headers['x-api-key'] ?? '')}` } = headers;
    const [, token, session] = BEARER.exec(authorization) ?? [];
    const sessionId = session && decodeUtf8(session);
    if (this.config.apiKeys === 'off') {
      this.checkSite(headers);
      return { tokenId: '', role: 'admin', sessionId };
    }
    const found = token && (await this.cache.find(token, () => this.credentials.find(token)));
    if (!found) throw new BroomwagonError('UNAUTHENTICATED', 'Send a valid token as Authorization: Bearer TOKEN');
    if (found.role === 'viewer') throw new BroomwagonError('FORBIDDEN', 'A token with the role viewer only reads');
    const { pool } = this.config;
    if (found.pools && !found.pools.includes(pool))
      throw new BroomwagonError('FORBIDDEN', 'The token is not for this pool');
    const { tokenId, role, maxGenerations, maxPerMinute } = found;
    if (maxPerMinute !== undefined) await this.limits.take(tokenId, maxPerMinute);
    return { tokenId, role, maxGenerations, sessionId };
  }
}

/** Limits of requests of keys per minute, counted in this replica. */
class RequestLimits {
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
