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
  /** Permissions that NATS has refused to this user. */
  readonly refusals: Refusals;
  /** Replies to requests on this connection that no service has sent. */
  readonly foreignReplies = new ForeignReplies();
  /** Id of this process among the replicas of its queue group; part of a subject. */
  readonly replicaId = randomBytes(6).toString('hex');
  /** Headers of all replies of this process. */
  readonly replicaHeaders = makeHeaders();
  /** Resolves when the connection is closed and does not reconnect, with the error that closed it, if there is one. */
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

  /** First part of the inboxes that requests on this connection use. */
  get inboxPrefix(): string | undefined {
    return this.config.inboxPrefix;
  }

  /**
   * Resolves, with the reason, when NATS has refused credentials of the environment for two minutes: only a restart of
   * the process brings others.
   */
  get needsRestart(): Promise<BroomwagonError> {
    return this.log.needsRestart;
  }

  /** True while the link to a server is up; false while it reconnects or is closed. */
  isConnected(): boolean {
    return this.connected && !this.nats.isClosed();
  }

  /** Why there is no link to a server, for readiness; undefined while there is one. */
  problem(): string | undefined {
    if (this.isConnected()) return undefined;
    return this.log.refusal ?? 'not connected';
  }

  /** Warning for readiness: the link works now, but not for every call; undefined if nothing is known. */
  warning(): string | undefined {
    return this.payloadWarning ?? this.foreignReplies.warning();
  }

  /** True when nothing will ever reconnect. */
  isClosed(): boolean {
    return this.nats.isClosed();
  }

  /** Sends buffered messages, finishes subscriptions and closes; at once when the link is down. Never throws. */
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
          this.log.end(String(data));
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

  /** Logs once that NATS refuses bodies that the protocol allows. */
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
 * Connects to NATS; afterwards the connection reconnects for ever.
 * Until `startDeadlineMs` a server that is not up yet is tried again; wrong credentials, and a failed TLS
 * handshake, fail at once, and the error names the setting.
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
      // Counts the dial: the pace of the first connection gives each dial more time, and has no pauses.
      first.nextWaitMs(0);
      const pace = new ReconnectPace(servers, config.reconnectWaitMs ?? 500);
      const paced: ConnectionOptions = { ...options, timeout: attemptMs };
      let nats: NatsConnection | undefined;
      paced.reconnectDelayHandler = () => {
        // nats.js calls this before each dial, and again after the wait; during the first connection it has no pauses.
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

/** Why the user may not read replies, or why that is not known in time; undefined if it may. */
async function inboxRefusal(nats: NatsConnection, prefix: string | undefined, timeoutMs: number) {
  let refusal: Error | undefined;
  const subscription = nats.subscribe(createInbox(prefix), { callback: (error) => (refusal = error ?? undefined) });
  const late = delay(timeoutMs, new Error('the server does not answer a ping'), { ref: false });
  // NATS reports a refusal before the answer to a ping.
  const failure = await Promise.race([nats.flush().catch((error: Error) => error), late]);
  if (!subscription.isClosed()) subscription.unsubscribe();
  return refusal ?? failure ?? undefined;
}
