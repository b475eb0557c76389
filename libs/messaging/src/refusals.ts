import { Logger } from '@nestjs/common';
import { BroomwagonError } from '@broomwagon/contracts';
import type { NatsError } from 'nats';

/** Operation that NATS does not permit, `publish` or `subscription`, and its subject. */
type Refused = NonNullable<NatsError['permissionContext']>;

const LOG_AGAIN_MS = 60_000;
/** Distinct subjects that are logged within that time; replies have very many. */
const MAX_LOGGED = 20;

/**
 * Refusals of NATS to the user of one connection. NATS reports them later than the call that published or subscribed,
 * and does not end the connection.
 */
export class Refusals {
  /** First subscription that was refused: its users do not work until the process is restarted. */
  subscription: BroomwagonError | undefined;
  private readonly logger = new Logger('Nats');
  private readonly listeners: ((subject: string, error: BroomwagonError) => void)[] = [];
  private readonly logged = new Set<string>();
  private loggedSinceMs = -Infinity;

  /** @param user name of the user in the configuration of NATS, if it has one */
  constructor(private readonly user: string | undefined) {}

  /** Calls the listener with each subject to which this user may not publish. */
  onPublish(listener: (subject: string, error: BroomwagonError) => void): void {
    this.listeners.push(listener);
  }

  /**
   * Notes and logs a refusal, the same subject once a minute. @returns the error for callers that wait for the
   * subscription
   */
  note({ operation, subject }: Refused): BroomwagonError {
    const error = new BroomwagonError(
      'FORBIDDEN',
      `NATS does not let ${this.user === undefined ? 'this user' : `the user ${this.user}`} ` +
        `${operation === 'publish' ? 'publish' : 'subscribe'} to ${subject}: add it to the permissions of the user`,
    );
    this.log(error.message);
    if (operation === 'publish') for (const listener of this.listeners) listener(subject, error);
    else this.subscription ??= error;
    return error;
  }

  private log(message: string): void {
    const now = performance.now();
    if (now - this.loggedSinceMs >= LOG_AGAIN_MS) {
      this.loggedSinceMs = now;
      this.logged.clear();
    }
    if (this.logged.has(message) || this.logged.size === MAX_LOGGED) return;
    this.logged.add(message);
    this.logger.error(message);
  }
}
