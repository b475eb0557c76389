import { NO_TLS_ADVICE, tlsAdvice, type TlsSettings } from '@broomwagon/contracts';
import { credsAuthenticator, ErrorCode, nkeyAuthenticator, type ConnectionOptions } from 'nats';
import { RereadFile } from './reread-file';

/** How to reach NATS. One kind of credentials at most is expected. */
export interface NatsConfig {
  /**
   * One or more addresses separated by commas, e.g. `nats://127.0.0.1:4222`; `user:password@` is understood. When one
   * begins with `tls://`, nothing is ever sent to a server without TLS.
   */
  url: string;
  /** Shown in the server's connection list. */
  name?: string;
  user?: string;
  password?: string;
  token?: string;
  /** Seed of an NKey (`SU...`). */
  nkeySeed?: string;
  /** Path of a `.creds` file, which is read again for each connection. */
  credsFile?: string;
  /** How TLS is spoken, for `tls://`. nats.js reads its properties for each connection. */
  tls?: TlsSettings;
  /** First part of the inboxes of this client; default `_INBOX`. */
  inboxPrefix?: string;
  /** How long the first connection may take before the start fails. Default 10,000. */
  startDeadlineMs?: number;
  /** Pause before the second attempt to reconnect, doubled to 10,000; the attempts never end. Default 500. */
  reconnectWaitMs?: number;
  /** Silence after which a link is cut and dialed again, although pings were sent, milliseconds. Default 5,000. */
  silenceMs?: number;
  /** Dials only the addresses of `url`, and no addresses that a cluster announces. */
  ignoreClusterUpdates?: boolean;
  /** How often a refused connection is explained in the log, milliseconds. Default 60,000. */
  explainEveryMs?: number;
}

const DEFAULT_SILENCE_MS = 5_000;
/** Pings without an answer after which a link is dead. */
const MAX_UNANSWERED_PINGS = 2;

/** Options for nats.js. The attempts to reconnect never end. */
export function connectionOptions(config: NatsConfig): ConnectionOptions {
  const addresses = config.url.split(',').map((address) => splitAddress(address.trim()));
  const login = addresses.find((address) => address.user !== undefined);
  // NATS reads addresses so: `secret@host` is a token, `user:password@host` are both.
  const token = login !== undefined && login.password === undefined ? login.user : undefined;
  return {
    servers: addresses.map((address) => address.host),
    name: config.name,
    inboxPrefix: config.inboxPrefix,
    user: config.user ?? (token === undefined ? login?.user : undefined),
    pass: config.password ?? login?.password,
    token: config.token ?? token,
    authenticator: buildAuthenticator(config),
    // nats.js takes no notice of the scheme of an address.
    tls: /(^|,)\s*tls:/i.test(config.url) ? (config.tls ?? {}) : undefined,
    // A connection that gave up leaves a process alive with no subscriptions, so it never gives up.
    maxReconnectAttempts: -1,
    ignoreAuthErrorAbort: true,
    pingInterval: Math.ceil((config.silenceMs ?? DEFAULT_SILENCE_MS) / (MAX_UNANSWERED_PINGS + 1)),
    maxPingOut: MAX_UNANSWERED_PINGS,
    ignoreClusterUpdates: config.ignoreClusterUpdates,
    // An Error object per request is made only for nicer stacks and doubles the cost of a request.
    noAsyncTraces: true,
  };
}

/** True if new credentials can come while the process runs; credentials of the environment are read at its start. */
export function canCredentialsChange(config: NatsConfig): boolean {
  return config.credsFile !== undefined || connectionOptions(config).tls !== undefined;
}

function buildAuthenticator(config: NatsConfig): ConnectionOptions['authenticator'] {
  const encoder = new TextEncoder();
  if (config.credsFile === undefined) {
    return config.nkeySeed === undefined ? undefined : nkeyAuthenticator(encoder.encode(config.nkeySeed));
  }
  const file = new RereadFile(config.credsFile);
  const authenticate = credsAuthenticator(() => encoder.encode(file.read()));
  // A file without credentials fails the start.
  authenticate();
  return (nonce) => {
    try {
      return authenticate(nonce);
    } catch {
      // An authenticator that throws closes the connection for good. NATS refuses this dial; the next reads the file.
      return undefined;
    }
  };
}

/** Why NATS lets this client not in, and the setting to change; undefined if another attempt may succeed. */
export function refusalAdvice(error: unknown): string | undefined {
  const { code, message = '' } = error as { code?: string; message?: string };
  switch (code) {
    case ErrorCode.AuthorizationViolation:
    case ErrorCode.AuthenticationExpired:
    case ErrorCode.AccountExpired:
    case ErrorCode.AuthenticationTimeout:
      return (
        `it refuses the connection (${message}); set NATS_USER and NATS_PASSWORD, NATS_TOKEN, NATS_NKEY_SEED ` +
        'or NATS_CREDS to what the server knows'
      );
    case ErrorCode.PermissionsViolation:
      return `it does not let this user read replies (${message}); set NATS_INBOX_PREFIX to the inboxes of the user`;
    case ErrorCode.ServerOptionNotAvailable:
      return NO_TLS_ADVICE;
    default:
      return tlsAdvice(error, 'NATS_TLS');
  }
}

/** True for a refusal of the credentials themselves. */
export function isCredentialsRefusal(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code === ErrorCode.AuthorizationViolation || code === ErrorCode.AuthenticationExpired;
}

interface Address {
  host: string;
  user?: string;
  password?: string;
}

function splitAddress(address: string): Address {
  const at = address.lastIndexOf('@');
  if (at < 0) {
    return { host: address };
  }
  const scheme = /^[a-z]+:\/\//i.exec(address)?.[0] ?? '';
  const [user, password] = address.slice(scheme.length, at).split(':', 2);
  return {
    host: scheme + address.slice(at + 1),
    user: decodeURIComponent(user ?? ''),
    password: password === undefined ? undefined : decodeURIComponent(password),
  };
}

/** An address for logs and errors. */
export function withoutCredentials(url: string): string {
  return url.replace(/\/\/[^@/,]*@/g, '//***@');
}
