import { type AbortAttemptsCommand, workerCommandSubject } from '@broomwagon/contracts';
import type { NatsConnection } from 'nats';

/** Receives the abort commands of a pool in place of its workers, and counts them. */
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

  /** Starts anew. @returns the time (`performance.now`) at which so many different requests have got a command */
  expect(count: number): Promise<number> {
    this.told = new Set();
    this.wanted = count;
    return new Promise((resolve) => (this.resolve = resolve));
  }
}
