import { Injectable } from '@nestjs/common';
import { BroomwagonError, type PoolName, ROLES } from '@broomwagon/contracts';
import { createRemoteJWKSet, errors, type JWTPayload, jwtVerify } from 'jose';
import { AdminApiConfig } from '../admin-api.config';
import type { Identity } from './identity';

const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/**
 * Allowed algorithms, all with public keys: with an algorithm that uses a shared secret, an attacker could sign with
 * the public key as the secret.
 */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];
/** Codes of errors of jose when the keys of the issuer come too late, not with status 200, or not as a key set. */
const WITHOUT_KEYS: ReadonlySet<string> = new Set(['ERR_JWKS_TIMEOUT', 'ERR_JOSE_GENERIC', 'ERR_JWKS_INVALID']);
type RemoteKeys = ReturnType<typeof createRemoteJWKSet>;
const FETCH_MS = 5_000;
const CLOCK_TOLERANCE_SECONDS = 30;

/** Checks JWTs of OIDC_ISSUER. Fetches the keys of the issuer at the first JWT, and again for an unknown key. */
@Injectable()
export class OidcIssuer {
  private keys?: Promise<RemoteKeys>;

  constructor(private readonly config: AdminApiConfig) {}

  /**
   * @returns undefined if the token is not a valid JWT of the issuer
   * @throws BroomwagonError FORBIDDEN for a JWT without a role, UNAVAILABLE when the issuer does not answer
   */
  async identify(token: string): Promise<Identity | undefined> {
    const { oidcIssuer: issuer, oidcAudience: audience } = this.config;
    if (issuer === undefined || !JWT.test(token)) return undefined;
    try {
      const keys = await (this.keys ??= this.discover(issuer));
      const { payload } = await jwtVerify(token, keys, {
        issuer,
        audience,
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        requiredClaims: ['exp', 'sub'],
      });
      return this.toIdentity(payload);
    } catch (error) {
      if (error instanceof BroomwagonError) throw error;
      if (error instanceof errors.JOSEError && !WITHOUT_KEYS.has(error.code)) return undefined;
      // Fresh keys are kept: a JWT with an unknown key must not end the use of known keys.
      if (!(await this.keys?.catch(() => undefined))?.fresh) this.keys = undefined;
      throw new BroomwagonError('UNAVAILABLE', 'The issuer of OIDC_ISSUER does not answer', { cause: error });
    }
  }

  private async discover(issuer: string): Promise<RemoteKeys> {
    const address = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const response = await fetch(address, { signal: AbortSignal.timeout(FETCH_MS) });
    const document = (await response.json()) as { issuer?: string; jwks_uri?: string };
    if (document.issuer !== issuer || document.jwks_uri === undefined) {
      throw new Error(`${address} is of the issuer ${document.issuer}`);
    }
    return createRemoteJWKSet(new URL(document.jwks_uri), { timeoutDuration: FETCH_MS });
  }

  private toIdentity(payload: JWTPayload): Identity {
    const { oidcRoleClaim, oidcRolePrefix, oidcPoolsClaim } = this.config;
    const names = readClaimTexts(payload, oidcRoleClaim);
    const role = ROLES.findLast((one) => names.includes(oidcRolePrefix + one));
    if (role === undefined) throw new BroomwagonError('FORBIDDEN', `The JWT has no role in its claim ${oidcRoleClaim}`);
    const { sub = '', preferred_username: name } = payload as JWTPayload & { preferred_username?: unknown };
    const pools: PoolName[] | undefined =
      oidcPoolsClaim === undefined ? undefined : readClaimTexts(payload, oidcPoolsClaim);
    return { id: `oidc:${sub}`, name: typeof name === 'string' ? name : sub, role, pools };
  }
}

/** The texts of a claim: a list, or words with spaces between them. The path may lead into nested claims. */
function readClaimTexts(payload: JWTPayload, path: string): string[] {
  const value = Object.hasOwn(payload, path)
    ? payload[path]
    : path.split('.').reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], payload);
  const list = Array.isArray(value) ? value : typeof value === 'string' ? value.split(' ') : [];
  return list.filter((one) => typeof one === 'string');
}
