import { Logger } from '@nestjs/common';
import { BroomwagonError } from '@broomwagon/contracts';
import type { NatsError } from 'nats';

/** A refused operation (`publish` or `subscription`) and its subject. */
type Refused = NonNullable<NatsError['permissionContext']>;

const LOG_AGAIN_MS = 60_000;
/** Maximum subjects that are logged within `LOG_AGAIN_MS`, because replies have very many subjects. */
const MAX_LOGGED = 20;

/**
 * Permissions that NATS has refused to the user of one connection. NATS reports a refusal after the publish or
 * subscribe has returned, and keeps the connection.
 */
export class Refusals {
  /** Error of the first refused subscription. Its handlers get no messages until the process is restarted. */
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
   * Notes a refusal, and logs it once a minute for each subject.
   * @returns the error for callers that wait for the subscription
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
