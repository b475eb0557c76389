import { Logger } from '@nestjs/common';

const SAY_AGAIN_MS = 60_000;

/**
 * Subjects to which replies may go: only inboxes. A caller chooses the reply subject. Without this check, a service
 * would publish commands or events for a caller, with the rights of the service.
 */
export class ReplySubjects {
  private readonly logger = new Logger(ReplySubjects.name);
  private readonly prefixes: readonly string[];
  private unsaid = 0;
  private saidAtMs = -Infinity;

  /**
   * @param inboxes first parts of the inboxes of callers, e.g. `_INBOX`
   * @param onRefused called for each refused subject
   */
  constructor(
    inboxes: readonly string[] = ['_INBOX'],
    private readonly onRefused: () => void = () => undefined,
  ) {
    this.prefixes = inboxes.map((inbox) => `${inbox}.`);
  }

  /** Returns false for a subject that is no inbox. Each refusal is counted, and logged at most once a minute. */
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
