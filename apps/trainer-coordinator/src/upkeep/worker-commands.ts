import { Injectable } from '@nestjs/common';
import { LIMITS, workerCommandSubject, type AbortAttemptsCommand, type PoolName } from '@broomwagon/contracts';
import { MessagingClient } from '@broomwagon/messaging';
import type { AttemptFence } from '@broomwagon/state';

/** Commands to workers. They may be lost: what matters is said again until it is confirmed. */
@Injectable()
export class WorkerCommands {
  constructor(private readonly messaging: MessagingClient) {}

  /** Tells the holders to end these attempts, in one message per worker and 128 attempts. */
  abort(pool: PoolName, cause: AbortAttemptsCommand['cause'], attempts: readonly AttemptFence[]): void {
    const byWorker = new Map<string, AttemptFence[]>();
    for (const attempt of attempts) {
      const worker = `${attempt.workerId}/${attempt.workerEpoch}`;
      const known = byWorker.get(worker);
      if (known) known.push(attempt);
      else byWorker.set(worker, [attempt]);
    }
    for (const held of byWorker.values()) {
      const { workerId, workerEpoch } = held[0]!;
      for (let start = 0; start < held.length; start += LIMITS.page) {
        const page = held.slice(start, start + LIMITS.page);
        const command: AbortAttemptsCommand = {
          workerEpoch,
          cause,
          attempts: page.map(({ requestId, attempt }) => ({ requestId, attempt })),
        };
        this.messaging.publish(workerCommandSubject(pool, workerId, 'abort'), command);
      }
    }
  }
}
