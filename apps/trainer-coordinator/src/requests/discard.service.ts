import { Injectable, Logger } from '@nestjs/common';
import { PayloadStore } from '@broomwagon/state';

/**
 * Removes payloads that nobody names any more, in the background. What is missed (this process dies, the store is
 * away) is found by the sweep of orphans.
 */
@Injectable()
export class DiscardService {
  private readonly logger = new Logger(DiscardService.name);

  constructor(private readonly payloads: PayloadStore) {}

  soon(refs: readonly string[]): void {
    void this.done(refs);
  }

  /** As {@link soon}, for those who go on only when the payloads are gone. Never fails. */
  async done(refs: readonly string[]): Promise<void> {
    if (refs.length === 0) return;
    await this.payloads.remove(refs).catch((error: unknown) => {
      this.logger.warn({ err: error, count: refs.length }, 'Payloads could not be removed now; they become orphans');
    });
  }
}
