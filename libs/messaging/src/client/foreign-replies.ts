import { Logger } from '@nestjs/common';
import type { Msg } from 'nats';
import { REPLICA_HEADER } from '../wire';

const LOG_AGAIN_MS = 60_000;
/** Time after the last foreign reply in which readiness has the warning, milliseconds. */
const REPORTED_MS = 120_000;
/** Maximum length of an acknowledgement of JetStream, bytes. */
const MAX_ACKNOWLEDGEMENT_BYTES = 1_024;

/**
 * Recognizes replies that no service has sent. For example, a JetStream stream that records the subjects of the
 * protocol acknowledges each request before the service replies.
 */
export class ForeignReplies {
  private readonly logger = new Logger('Nats');
  private readonly loggedAtMs = new Map<string, number>();
  private latest: { warning: string; atMs: number } | undefined;

  /**
   * Returns a warning about the last foreign reply, for readiness; undefined after two minutes without a foreign reply.
   */
  warning(): string | undefined {
    const { latest } = this;
    return latest !== undefined && performance.now() - latest.atMs < REPORTED_MS ? latest.warning : undefined;
  }

  /**
   * Whether a reply comes from a program that is no service. Foreign replies are logged once a minute. Replies of
   * services name a replica; only earlier versions omit the name when they answer a parked call.
   * @param mayPark true if the service may park the call
   */
  isForeign(subject: string, message: Msg, mayPark: boolean): boolean {
    if (message.headers?.has(REPLICA_HEADER)) return false;
    const stream = streamThatAcknowledges(message);
    if (mayPark && stream === undefined) return false;
    this.report(subject, stream);
    return true;
  }

  /**
   * Reports a foreign reply to the log and to readiness.
   * @param stream name of the JetStream stream that has replied; undefined for any other program
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

/** Returns the name of the stream in an acknowledgement (`PubAck`); undefined for any other message. */
function streamThatAcknowledges({ data }: Msg): string | undefined {
  if (data.length > MAX_ACKNOWLEDGEMENT_BYTES) return undefined;
  try {
    const body = JSON.parse(Buffer.from(data).toString('utf8')) as { stream?: unknown; seq?: unknown } | null;
    return typeof body?.stream === 'string' && typeof body.seq === 'number' ? body.stream : undefined;
  } catch {
    return undefined;
  }
}
