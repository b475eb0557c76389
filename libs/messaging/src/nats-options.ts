import { NO_TLS_ADVICE, tlsAdvice, type TlsSettings } from '@broomwagon/contracts';
import { credsAuthenticator, ErrorCode, nkeyAuthenticator, type ConnectionOptions } from 'nats';
import { RereadFile } from './reread-file';

/** Address of NATS, credentials of at most one kind, and times. */
export interface NatsConfig {
  /**
   * Addresses, separated by commas, e.g. `nats://127.0.0.1:4222`, optionally with `user:password@`. If one address
   * begins with `tls://`, all connections use TLS.
   */
  url: string;
  /** Name in the list of connections of NATS. */
  name?: string;
  user?: string;
  password?: string;
  token?: string;
  /** Seed of an NKey (`SU...`). */
  nkeySeed?: string;
  /** Path of a `.creds` file, which is read again for each connection. */
  credsFile?: string;
  /** Options of TLS, for `tls://`. nats.js reads these properties for each connection. */
  tls?: TlsSettings;
  /** First part of the inboxes of this client; default `_INBOX`. */
  inboxPrefix?: string;
  /** Maximum duration of the first connection, milliseconds; then the start fails. Default 10,000. */
  startDeadlineMs?: number;
  /**
   * Pause before the second attempt to reconnect, milliseconds, doubled up to 10,000. Attempts never end. Default 500.
   */
  reconnectWaitMs?: number;
  /** Time without an answer to pings after which a link is cut and dialed again, milliseconds. Default 5,000. */
  silenceMs?: number;
  /** True: only the addresses of `url` are dialed, and no addresses that a cluster announces. */
  ignoreClusterUpdates?: boolean;
  /** Interval of explanations of a refused connection in the log, milliseconds. Default 60,000. */
  explainEveryMs?: number;
}

const DEFAULT_SILENCE_MS = 5_000;
/** Number of pings without an answer after which a link is dead. */
const MAX_UNANSWERED_PINGS = 2;

/** Builds the options for nats.js. */
export function connectionOptions(config: NatsConfig): ConnectionOptions {
  const addresses = config.url.split(',').map((address) => splitAddress(address.trim()));
  const login = addresses.find((address) => address.user !== undefined);
  // As in NATS, `secret@host` has a token, and `user:password@host` has a user and a password.
  const token = login !== undefined && login.password === undefined ? login.user : undefined;
  return {
    servers: addresses.map((address) => address.host),
    name: config.name,
    inboxPrefix: config.inboxPrefix,
    user: config.user ?? (token === undefined ? login?.user : undefined),
    pass: config.password ?? login?.password,
    token: config.token ?? token,
    authenticator: buildAuthenticator(config),
    // nats.js ignores the scheme of an address.
    tls: /(^|,)\s*tls:/i.test(config.url) ? (config.tls ?? {}) : undefined,
    // The attempts never end, because a process without a connection would stay alive without subscriptions.
    maxReconnectAttempts: -1,
    ignoreAuthErrorAbort: true,
    pingInterval: Math.ceil((config.silenceMs ?? DEFAULT_SILENCE_MS) / (MAX_UNANSWERED_PINGS + 1)),
    maxPingOut: MAX_UNANSWERED_PINGS,
    ignoreClusterUpdates: config.ignoreClusterUpdates,
    // An Error object for each request only improves stack traces, and doubles the cost of a request.
    noAsyncTraces: true,
  };
}

/** True if credentials may change while the process runs. Credentials of the environment are read only at the start. */
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
      // An authenticator that throws would close the connection for good. NATS refuses this dial, and the next dial
      // reads the file again.
      return undefined;
    }
  };
}

/** Returns why NATS refuses this client, and the setting to change; undefined if another attempt may succeed. */
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

/** True if NATS has refused the credentials. */
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

/** Masks the credentials in addresses, for logs and errors. */
export function withoutCredentials(url: string): string {
  return url.replace(/\/\/[^@/,]*@/g, '//***@');
}
