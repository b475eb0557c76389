import { Logger } from '@nestjs/common';
import type { Msg } from 'nats';
import { REPLICA_HEADER } from '../wire';

const LOG_AGAIN_MS = 60_000;
/** How long after the last foreign reply the warning for readiness stays, milliseconds. */
const REPORTED_MS = 120_000;
/** A reply of JetStream is at most this long, bytes. */
const MAX_ACKNOWLEDGEMENT_BYTES = 1_024;

/**
 * Recognizes replies that no service has sent. A JetStream stream over the subjects of the protocol, made to record
 * them, acknowledges each request with its name and a sequence, before the service replies.
 */
export class ForeignReplies {
  private readonly logger = new Logger('Nats');
  private readonly loggedAtMs = new Map<string, number>();
  private latest: { warning: string; atMs: number } | undefined;

  /** The last foreign reply, for readiness; undefined when there was none within two minutes. */
  warning(): string | undefined {
    const { latest } = this;
    return latest !== undefined && performance.now() - latest.atMs < REPORTED_MS ? latest.warning : undefined;
  }

  /**
   * Whether a reply comes from a program that is no service; logged once a minute. The replies of a service name its
   * replica, but for a parked call that an earlier version answers.
   * @param mayPark the call may be answered later, by any replica
   */
  isForeign(subject: string, message: Msg, mayPark: boolean): boolean {
    if (message.headers?.has(REPLICA_HEADER)) return false;
    const stream = streamThatAcknowledges(message);
    if (mayPark && stream === undefined) return false;
    this.report(subject, stream);
    return true;
  }

  /**
   * Notes, for log and readiness, who replies to a request in place of a service.
   * @param stream name of the JetStream stream; undefined for any other program
   */
  report(subject: string, stream: string | undefined): void {
    const cause =
      stream === undefined
        ? 'a program that is no service of Broomwagon replies to it'
        : `the JetStream stream ${stream} stores it, and acknowledges each request`;
    const warning = `Foreign replies to ${subject}: ${cause}; remove it, or take the subjects of Broomwagon out of it`;
    const now = performance.now();
    this.latest = { warning, atMs: now };
    const source = stream ?? '';
    if (now - (this.loggedAtMs.get(source) ?? -Infinity) < LOG_AGAIN_MS) return;
    this.loggedAtMs.set(source, now);
    this.logger.error(warning);
  }
}

/** Name of the stream whose acknowledgement (`PubAck`) this message is; undefined for any other message. */
function streamThatAcknowledges({ data }: Msg): string | undefined {
  if (data.length > MAX_ACKNOWLEDGEMENT_BYTES) return undefined;
  try {
    const body = JSON.parse(Buffer.from(data).toString('utf8')) as { stream?: unknown; seq?: unknown } | null;
    return typeof body?.stream === 'string' && typeof body.seq === 'number' ? body.stream : undefined;
  } catch {
    return undefined;
  }
}
