import { Logger } from '@nestjs/common';

const SAY_AGAIN_MS = 60_000;

/**
 * Where replies may go: inboxes only. A caller names the subject of its reply, so it could make a
 * service publish commands to workers, or events, with the rights of the service.
 */
export class ReplySubjects {
  private readonly logger = new Logger(ReplySubjects.name);
  private readonly prefixes: readonly string[];
  private unsaid = 0;
  private saidAtMs = -Infinity;

  /**
   * @param inboxes first parts of the inboxes of callers, e.g. `_INBOX`; NATS accounts may give each role its own
   * @param onRefused counts
   */
  constructor(
    inboxes: readonly string[] = ['_INBOX'],
    private readonly onRefused: () => void = () => undefined,
  ) {
    this.prefixes = inboxes.map((inbox) => `${inbox}.`);
  }

  /** False, counted and logged once a minute at most, for a subject that is no inbox. */
  allows(subject: string): boolean {
    if (this.prefixes.some((prefix) => subject.startsWith(prefix)) && !/[\s*>]/.test(subject)) return true;
    this.onRefused();
    this.unsaid += 1;
    const now = performance.now();
    if (now - this.saidAtMs >= SAY_AGAIN_MS) {
      this.logger.warn(`${this.unsaid} replies were not published: their subjects are not inboxes (REPLY_PREFIXES)`);
      this.saidAtMs = now;
      this.unsaid = 0;
    }
    return false;
  }
}
