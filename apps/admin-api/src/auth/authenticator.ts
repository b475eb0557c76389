import { Injectable } from '@nestjs/common';
import { CredentialStore, isTokenHash, TokenCache } from '@broomwagon/state';
import { AdminApiConfig } from '../admin-api.config';
import type { Identity } from './identity';
import { OidcIssuer } from './oidc-issuer';

@Injectable()
export class Authenticator {
  private readonly cache = new TokenCache<Identity>();

  constructor(
    private readonly credentials: CredentialStore,
    private readonly issuer: OidcIssuer,
    private readonly config: AdminApiConfig,
  ) {}

  /** @returns undefined for an unknown token. @throws BroomwagonError UNAVAILABLE, FORBIDDEN */
  identify(token: string): Promise<Identity | undefined> {
    return this.cache.find(
      token,
      async () => this.configured(token) ?? (await this.stored(token)) ?? (await this.issuer.identify(token)),
    );
  }

  private configured(token: string): Identity | undefined {
    const found = this.config.adminTokenSha256.filter((hash) => isTokenHash(hash, token));
    return found.length > 0 ? { id: 'configured', name: 'ADMIN_TOKEN_SHA256', role: 'admin' } : undefined;
  }

  private async stored(token: string): Promise<Identity | undefined> {
    const found = await this.credentials.find(token);
    return found && { id: found.tokenId, name: found.name, role: found.role, pools: found.pools };
  }
}
