import { Env, ServiceConfig } from '@broomwagon/platform';
import { Matches } from 'class-validator';

/** Configuration of admin-api. Its routes are on HTTP_HOST and HTTP_PORT, with those of health. */
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

  @Env('AUDIT_STREAM_MAX_BYTES', 'maximum size of the JetStream stream of the audit log', { min: 1_048_576 })
  auditStreamMaxBytes: number = 268_435_456;

  @Env('AUDIT_STREAM_MAX_AGE_MS', 'maximum age of entries of the audit log', { min: 60_000 })
  auditStreamMaxAgeMs: number = 7_776_000_000;
}
