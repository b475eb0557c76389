import { type AbortAttemptsCommand, workerCommandSubject } from '@broomwagon/contracts';
import type { NatsConnection } from 'nats';

/** Receives the commands for the workers of a pool, in their place. */
export class AbortCounter {
  private told = new Set<string>();
  private wanted = 0;
  private resolve?: (atMs: number) => void;

  constructor(nats: NatsConnection, pool: string) {
    nats.subscribe(workerCommandSubject(pool, '*', 'abort'), {
      callback: (_, message) => {
        for (const { requestId } of message.json<AbortAttemptsCommand>().attempts) this.told.add(requestId);
        if (this.told.size >= this.wanted) this.resolve?.(performance.now());
      },
    });
  }

  /** Forgets all commands. @returns when the last of so many different attempts got its command, `performance.now` */
  expect(count: number): Promise<number> {
    this.told = new Set();
    this.wanted = count;
    return new Promise((resolve) => (this.resolve = resolve));
  }
}
