import { type AbortAttemptsCommand, workerCommandSubject } from '@broomwagon/contracts';
import type { NatsConnection } from 'nats';

/** Hears what the workers of a pool are told, in their place. */
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

  /** Forgets what was heard. @returns when the last of so many different attempts was told to end, `performance.now` */
  expect(count: number): Promise<number> {
    this.told = new Set();
    this.wanted = count;
    return new Promise((resolve) => (this.resolve = resolve));
  }
}
