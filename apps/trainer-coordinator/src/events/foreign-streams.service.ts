import { Injectable, Logger } from '@nestjs/common';
import { OPERATION_PATTERNS } from '@broomwagon/contracts';
import { findStreamsOver, MessagingConnection } from '@broomwagon/messaging';
import { Periodically } from '@broomwagon/platform';

const INTERVAL_MS = 60_000;

/**
 * Finds JetStream streams that store requests: a caller would get the acknowledgement of such a stream as its reply.
 * Reports the streams in log and readiness, at the start and each minute.
 */
@Injectable()
export class ForeignStreamsService {
  private readonly logger = new Logger(ForeignStreamsService.name);
  /** Reason why the last list of streams failed. A new reason is logged. */
  private obstacle: string | undefined;

  constructor(private readonly connection: MessagingConnection) {}

  @Periodically('foreign-streams', () => INTERVAL_MS, { isImmediate: true })
  async check(): Promise<void> {
    if (!this.connection.isConnected()) return;
    try {
      const found = await findStreamsOver(this.connection, OPERATION_PATTERNS);
      for (const { stream, subject } of found) this.connection.foreignReplies.report(subject, stream);
      this.obstacle = undefined;
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.obstacle) this.logger.log(`JetStream does not list streams over requests: ${message}`);
      this.obstacle = message;
    }
  }
}
