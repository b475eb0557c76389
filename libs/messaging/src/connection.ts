import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { BroomwagonError, LIMITS } from '@broomwagon/contracts';
import {
  connect,
  createInbox,
  DebugEvents,
  ErrorCode,
  Events,
  headers as makeHeaders,
  type ConnectionOptions,
  type NatsConnection,
} from 'nats';
import { ForeignReplies } from './client/foreign-replies';
import { LinkLog } from './link-log';
import { LinkProbe } from './link-probe';
import { connectionOptions, refusalAdvice, withoutCredentials, type NatsConfig } from './nats-options';
import { allowDial, failClosedDial, getLastError, isAnnounced, listAddresses, setDialTimeout } from './nats-internals';
import { ReconnectPace } from './reconnect-pace';
import { Refusals } from './refusals';
import { REPLICA_HEADER } from './wire';

export type { NatsConfig } from './nats-options';

/** A NATS connection that reconnects for ever and reports whether it is up. */
export class MessagingConnection {
  private connected = true;
  private reason: Error | undefined;
  /** Called when the link to a server is up again. */
  onReconnect: () => void = () => undefined;
  /** Subjects that NATS has refused to this user. */
  readonly refusals: Refusals;
  /** Foreign replies to requests on this connection. */
  readonly foreignReplies = new ForeignReplies();
  /** Id of this process among the replicas of its service, and a token of subjects. */
  readonly replicaId = randomBytes(6).toString('hex');
  /** Headers of all replies of this process. */
  readonly replicaHeaders = makeHeaders();
  /** Resolves when the connection is closed for good, with the error that has closed the connection, if any. */
  readonly closedForGood: Promise<Error | undefined>;
  private readonly log: LinkLog;
  private readonly probe: LinkProbe;
  private readonly logger = new Logger('Nats');
  private payloadWarning: string | undefined;

  constructor(
    readonly nats: NatsConnection,
    readonly config: NatsConfig,
    private readonly pace: ReconnectPace,
  ) {
    this.refusals = new Refusals(connectionOptions(config).user);
    this.log = new LinkLog(config);
    this.probe = new LinkProbe(
      () => listAddresses(nats),
      () => this.pace.endPause(),
    );
    this.replicaHeaders.set(REPLICA_HEADER, this.replicaId);
    this.closedForGood = nats.closed().then((error) => {
      this.connected = false;
      this.probe.stop();
      this.log.stop();
      this.reason = error ?? undefined;
      return this.reason;
    });
    this.checkMaxPayload();
    void this.watchStatus();
  }

  /** First part of the inboxes of requests on this connection. */
  get inboxPrefix(): string | undefined {
    return this.config.inboxPrefix;
  }

  /**
   * Resolves, with the reason, when NATS has refused credentials of the environment for two minutes. Only a restart of
   * the process reads other credentials.
   */
  get needsRestart(): Promise<BroomwagonError> {
    return this.log.needsRestart;
  }

  /** True while the link to a server is up; false during a reconnect, and after the close. */
  isConnected(): boolean {
    return this.connected && !this.nats.isClosed();
  }

  /** Returns why there is no link to a server, for readiness; undefined while the link is up. */
  problem(): string | undefined {
    if (this.isConnected()) return undefined;
    return this.log.refusal ?? 'not connected';
  }

  /** Returns a warning for readiness: why some calls fail although the link works; undefined if no reason is known. */
  warning(): string | undefined {
    return this.payloadWarning ?? this.foreignReplies.warning();
  }

  /** True if the connection is closed for good. */
  isClosed(): boolean {
    return this.nats.isClosed();
  }

  /**
   * Closes the connection, after buffered messages are sent and subscriptions are finished if the link is up. Never
   * throws.
   */
  async drain(deadlineMs = 5_000): Promise<void> {
    if (this.nats.isClosed()) return;
    if (this.connected) {
      await Promise.race([this.nats.drain().catch(() => undefined), delay(deadlineMs, undefined, { ref: false })]);
    }
    await this.close();
  }

  async close(): Promise<void> {
    await this.nats.close().catch(() => undefined);
  }

  private async watchStatus(): Promise<void> {
    for await (const { type, data, permissionContext } of this.nats.status()) {
      switch (type) {
        case DebugEvents.StaleConnection:
          this.log.noteSilence();
          break;
        case Events.Disconnect:
          this.connected = false;
          if (this.nats.isClosed()) break;
          failClosedDial(this.nats);
          this.log.begin(String(data));
          this.probe.begin();
          break;
        case DebugEvents.Reconnecting:
          this.log.noteDial(String(data), isAnnounced(this.nats, String(data)));
          break;
        case Events.Update:
          this.checkMaxPayload();
          break;
        case Events.Reconnect:
          this.checkMaxPayload();
          this.connected = true;
          this.pace.reset();
          this.probe.stop();
          this.log.end();
          this.onReconnect();
          break;
        case Events.Error:
          if (permissionContext !== undefined) this.refusals.note(permissionContext);
          else this.log.noteError(getLastError(this.nats) ?? new Error(String(data)));
          break;
        default:
      }
    }
  }

  /** Logs, once for each limit, that NATS refuses bodies that the protocol allows. */
  private checkMaxPayload(): void {
    const maxBytes = this.nats.info?.max_payload ?? Infinity;
    const warning =
      maxBytes < LIMITS.bodyBytes
        ? `NATS at ${withoutCredentials(this.config.url)} takes messages of up to ${maxBytes} bytes: larger calls ` +
          'fail with PAYLOAD_TOO_LARGE; set its max_payload to 1MB or more'
        : undefined;
    if (warning !== undefined && warning !== this.payloadWarning) this.logger.warn(warning);
    this.payloadWarning = warning;
  }
}

/**
 * Connects to NATS; afterwards the connection reconnects for ever. A server that is not up yet is tried again until
 * `startDeadlineMs`. Wrong credentials or a failed TLS handshake are an error at once, which names the setting.
 * @throws BroomwagonError UNAVAILABLE
 */
export async function connectNats(config: NatsConfig): Promise<MessagingConnection> {
  const options = connectionOptions(config);
  const servers = options.servers!.length;
  const first = new ReconnectPace(servers, 0);
  const deadline = Date.now() + (config.startDeadlineMs ?? 10_000);
  for (;;) {
    try {
      const attemptMs = Math.max(100, Math.min(first.dialTimeoutMs(), deadline - Date.now()));
      // The call counts the dial, so that the next dial of the first connection has more time. This pace has no pauses.
      first.nextWaitMs(0);
      const pace = new ReconnectPace(servers, config.reconnectWaitMs ?? 500);
      const paced: ConnectionOptions = { ...options, timeout: attemptMs };
      let nats: NatsConnection | undefined;
      paced.reconnectDelayHandler = () => {
        // nats.js calls this handler before each dial, and again after the wait. The first connection has no pauses.
        if (nats === undefined) return 0;
        pace.setServers(listAddresses(nats).length);
        setDialTimeout(nats, pace.dialTimeoutMs());
        const waitMs = pace.nextWaitMs(performance.now());
        allowDial(nats, waitMs === 0);
        return waitMs;
      };
      nats = await connect(paced);
      const refusal = await inboxRefusal(nats, config.inboxPrefix, attemptMs);
      if (refusal === undefined) return new MessagingConnection(nats, config, pace);
      await nats.close();
      throw refusal;
    } catch (error) {
      const { code } = error as { code?: string };
      const advice = refusalAdvice(error);
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

/**
 * Returns why the user may not read replies, or why this is not known in time; undefined if the user may read replies.
 */
async function inboxRefusal(nats: NatsConnection, prefix: string | undefined, timeoutMs: number) {
  let refusal: Error | undefined;
  const subscription = nats.subscribe(createInbox(prefix), { callback: (error) => (refusal = error ?? undefined) });
  const late = delay(timeoutMs, new Error('the server does not answer a ping'), { ref: false });
  // NATS reports a refusal before the answer to a ping.
  const failure = await Promise.race([nats.flush().catch((error: Error) => error), late]);
  if (!subscription.isClosed()) subscription.unsubscribe();
  return refusal ?? failure ?? undefined;
}
