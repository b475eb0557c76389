import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { BroomwagonError, NO_TLS_ADVICE, tlsAdvice, type TlsSettings } from '@broomwagon/contracts';
import {
  connect,
  createInbox,
  credsAuthenticator,
  ErrorCode,
  Events,
  nkeyAuthenticator,
  type ConnectionOptions,
  type NatsConnection,
} from 'nats';
import { Refusals } from './refusals';

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
  /** Path of a `.creds` file. */
  credsFile?: string;
  /** How TLS is spoken, for `tls://`. */
  tls?: TlsSettings;
  /** First part of the inboxes of this client; default `_INBOX`. */
  inboxPrefix?: string;
  /** How long the first connection may take before the start fails. Default 10,000. */
  startDeadlineMs?: number;
  /** Pause between attempts to reconnect, which never end. Default 500. */
  reconnectWaitMs?: number;
}

/** A NATS connection that reconnects for ever and reports whether it is up. */
export class MessagingConnection {
  private connected = true;
  private reason: Error | undefined;
  /** Called when the link to a server is up again. */
  onReconnect: () => void = () => undefined;
  /** What NATS has refused to this user. */
  readonly refusals: Refusals;
  /** Settles when the connection is closed and does not reconnect, with the error that closed it, if there is one. */
  readonly closedForGood: Promise<Error | undefined>;

  constructor(
    readonly nats: NatsConnection,
    /** First part of the inboxes that requests on it use. */
    readonly inboxPrefix?: string,
    user?: string,
  ) {
    this.refusals = new Refusals(user);
    this.closedForGood = nats.closed().then((error) => {
      this.connected = false;
      this.reason = error ?? undefined;
      return this.reason;
    });
    void this.watchStatus();
  }

  /** True while the link to a server is up; false while it reconnects or is closed. */
  isConnected(): boolean {
    return this.connected && !this.nats.isClosed();
  }

  /** True when nothing will ever reconnect. */
  isClosed(): boolean {
    return this.nats.isClosed();
  }

  /** Sends what is buffered, finishes subscriptions and closes; at once when the link is down. Never throws. */
  async drain(deadlineMs = 5_000): Promise<void> {
    if (this.nats.isClosed()) return;
    if (this.connected) {
      await Promise.race([this.nats.drain().catch(() => undefined), delay(deadlineMs, undefined, { ref: false })]);
    }
    await this.close();
  }

  /** Closes at once. */
  async close(): Promise<void> {
    await this.nats.close().catch(() => undefined);
  }

  private async watchStatus(): Promise<void> {
    for await (const status of this.nats.status()) {
      if (status.type === Events.Disconnect) {
        this.connected = false;
      } else if (status.type === Events.Reconnect) {
        this.connected = true;
        this.onReconnect();
      } else if (status.permissionContext !== undefined) {
        this.refusals.note(status.permissionContext);
      }
    }
  }
}

/**
 * Connects to NATS; afterwards the connection reconnects for ever.
 * Until `startDeadlineMs` a server that is not up yet is tried again; wrong credentials, and a failed TLS
 * handshake, fail at once, and the error names the setting.
 * @throws BroomwagonError UNAVAILABLE
 */
export async function connectNats(config: NatsConfig): Promise<MessagingConnection> {
  const options = connectionOptions(config);
  const deadline = Date.now() + (config.startDeadlineMs ?? 10_000);
  for (;;) {
    try {
      const attemptMs = Math.max(100, Math.min(2_000, deadline - Date.now()));
      const nats = await connect({ ...options, timeout: attemptMs });
      const refusal = await inboxRefusal(nats, config.inboxPrefix, attemptMs);
      if (refusal === undefined) return new MessagingConnection(nats, config.inboxPrefix, options.user);
      await nats.close();
      throw refusal;
    } catch (error) {
      const { code } = error as { code?: string };
      const advice = adviceFor(error);
      if (advice !== undefined || Date.now() + 200 >= deadline) {
        const silent = code === ErrorCode.Timeout && options.tls && config.tls?.cert === undefined;
        const hint = silent
          ? 'check that it is reachable and whether it requires a client certificate (NATS_TLS_CERT, NATS_TLS_KEY)'
          : 'check that NATS runs at the address of NATS_URL';
        const why = advice ?? `${(error as Error).message}; ${hint}`;
        throw new BroomwagonError('UNAVAILABLE', `NATS at ${withoutCredentials(config.url)}: ${why}`, { cause: error });
      }
      await delay(200);
    }
  }
}

/** Why the user may not read replies, or why that is not known in time; undefined if it may. */
async function inboxRefusal(nats: NatsConnection, prefix: string | undefined, timeoutMs: number) {
  let refusal: Error | undefined;
  const subscription = nats.subscribe(createInbox(prefix), { callback: (error) => (refusal = error ?? undefined) });
  const late = delay(timeoutMs, new Error('the server does not answer a ping'), { ref: false });
  // What was refused is reported before the answer to a ping.
  const failure = await Promise.race([nats.flush().catch((error: Error) => error), late]);
  if (!subscription.isClosed()) subscription.unsubscribe();
  return refusal ?? failure ?? undefined;
}

/** What to set when trying again does not help; undefined when it may. */
function adviceFor(error: unknown): string | undefined {
  const { code, message } = error as { code?: string; message?: string };
  switch (code) {
    case ErrorCode.AuthorizationViolation:
    case ErrorCode.AuthenticationExpired:
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

function connectionOptions(config: NatsConfig): ConnectionOptions {
  const addresses = config.url.split(',').map((address) => splitAddress(address.trim()));
  const login = addresses.find((address) => address.user !== undefined);
  // As everywhere with NATS: `secret@host` is a token, `user:password@host` are both.
  const token = login !== undefined && login.password === undefined ? login.user : undefined;
  return {
    servers: addresses.map((address) => address.host),
    name: config.name,
    inboxPrefix: config.inboxPrefix,
    user: config.user ?? (token === undefined ? login?.user : undefined),
    pass: config.password ?? login?.password,
    token: config.token ?? token,
    authenticator: authenticatorOf(config),
    // nats.js takes no notice of the scheme of an address.
    tls: /(^|,)\s*tls:/i.test(config.url) ? (config.tls ?? {}) : undefined,
    // A connection that gave up leaves a process alive with no subscriptions, so it never gives up.
    maxReconnectAttempts: -1,
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: config.reconnectWaitMs ?? 500,
    reconnectJitter: 200,
    // A dead link is noticed after two unanswered pings.
    pingInterval: 20_000,
    maxPingOut: 2,
    // An Error object per request is made only for nicer stacks and doubles the cost of a request.
    noAsyncTraces: true,
  };
}

function authenticatorOf(config: NatsConfig): ConnectionOptions['authenticator'] {
  if (config.credsFile !== undefined) return credsAuthenticator(readFileSync(config.credsFile));
  return config.nkeySeed === undefined ? undefined : nkeyAuthenticator(new TextEncoder().encode(config.nkeySeed));
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

function withoutCredentials(url: string): string {
  return url.replace(/\/\/[^@/,]*@/g, '//***@');
}
