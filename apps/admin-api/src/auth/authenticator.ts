import { Injectable } from '@nestjs/common';
import { CredentialStore, hashOfToken, isHashOf } from '@broomwagon/state';
import { AdminApiConfig } from '../admin-api.config';
import type { Identity } from './identity';
import { OidcIssuer } from './oidc-issuer';

/** A revoked token is refused after this at the latest, milliseconds. */
const CACHED_MS = 5_000;
const MOST_CACHED = 10_000;

/** Finds out whose token a request carries. */
@Injectable()
export class Authenticator {
  private readonly cache = new Map<string, { identity: Identity | undefined; untilMs: number }>();

  constructor(
    private readonly credentials: CredentialStore,
    private readonly issuer: OidcIssuer,
    private readonly config: AdminApiConfig,
  ) {}

  /** @returns undefined for a token that is unknown; @throws BroomwagonError UNAVAILABLE, FORBIDDEN */
  async identify(token: string): Promise<Identity | undefined> {
    const hash = hashOfToken(token);
    const cached = this.cache.get(hash);
    if (cached !== undefined && cached.untilMs > Date.now()) return cached.identity;
    const identity = this.configured(token) ?? (await this.stored(token)) ?? (await this.issuer.identify(token));
    if (this.cache.size >= MOST_CACHED) this.cache.clear();
    this.cache.set(hash, { identity, untilMs: Date.now() + CACHED_MS });
    return identity;
  }

  private configured(token: string): Identity | undefined {
    const found = this.config.adminTokenSha256.filter((hash) => isHashOf(hash, token));
    return found.length > 0 ? { id: 'configured', name: 'ADMIN_TOKEN_SHA256', role: 'admin' } : undefined;
  }

  private async stored(token: string): Promise<Identity | undefined> {
    const found = await this.credentials.find(token);
    return found && { id: found.tokenId, name: found.name, role: found.role, pools: found.pools };
  }
}
