import { Env, MAX_AGE_MS, ServiceConfig } from '@broomwagon/platform';
import { Matches } from 'class-validator';

/** Configuration of admin-api. Its routes and the health routes are on HTTP_HOST and HTTP_PORT. */
export class AdminApiConfig extends ServiceConfig {
  @Env(
    'ADMIN_TOKEN_SHA256',
    'SHA-256 (hexadecimal) of tokens with the role admin, separated by commas; two during a rotation',
  )
  @Matches(/^[0-9a-f]{64}$/, { each: true, message: 'must be SHA-256 sums of 64 hexadecimal digits' })
  adminTokenSha256: string[] = [];

  @Env('CALL_TIMEOUT_MS', 'maximum duration of a call to another service; a request may wait 30 s longer', {
    min: 100,
    max: 600_000,
  })
  callTimeoutMs: number = 10_000;

  @Env('RATE_LIMIT_PER_TOKEN', 'maximum requests of one token in a second; more are answered 429', { min: 1 })
  rateLimitPerToken: number = 200;

  @Env('RATE_LIMIT_PER_ADDRESS', 'maximum requests from one address in a second; more are answered 429', { min: 1 })
  rateLimitPerAddress: number = 400;

  @Env('TRUSTED_PROXIES', 'number of proxies in front that set X-Forwarded-For', { min: 0, max: 16 })
  trustedProxies: number = 0;

  @Env('MAX_EVENT_READERS', 'maximum streams of events at the same time; more are answered 503', { min: 1 })
  maxEventReaders: number = 10_000;

  @Env('EVENT_UNREAD_MAX_BYTES', 'unread events of all readers together; one with more than its share is cut off', {
    min: 1_048_576,
  })
  eventUnreadMaxBytes: number = 268_435_456;

  @Env('AUDIT_STREAM_MAX_BYTES', 'maximum size of the JetStream stream of the audit log', { min: 1_048_576 })
  auditStreamMaxBytes: number = 268_435_456;

  @Env('AUDIT_STREAM_MAX_AGE_MS', 'maximum age of entries of the audit log', { min: 60_000, max: MAX_AGE_MS })
  auditStreamMaxAgeMs: number = 7_776_000_000;

  @Env('OIDC_ISSUER', 'issuer of JWTs that are accepted as bearer tokens (OpenID Connect)')
  @Matches(/^(https:\/\/|http:\/\/(127\.0\.0\.1|localhost|\[::1\])[:/])/, { message: 'must be an https address' })
  oidcIssuer?: string;

  @Env('OIDC_AUDIENCE', 'audience that a JWT must have')
  oidcAudience: string = 'broomwagon';

  @Env('OIDC_ROLE_CLAIM', 'claim with the roles, a name or a path as realm_access.roles')
  oidcRoleClaim: string = 'roles';

  @Env('OIDC_ROLE_PREFIX', 'what precedes viewer, operator or admin in the role claim')
  oidcRolePrefix: string = 'broomwagon-';

  @Env('OIDC_POOLS_CLAIM', 'claim with the names of the pools of the caller; default: all pools')
  oidcPoolsClaim?: string;
}
