import { Injectable, Logger } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { isBroomwagonError, outages } from '@broomwagon/contracts';
import { PayloadStore } from '@broomwagon/state';

/** Pause between two checks of a store that cannot be written. */
const CHECK_INTERVAL_MS = 1_000;

/**
 * Holds back the claims of this worker while its payload store cannot be used, because generated tokens would be lost.
 * The coordinator does the same for all workers when its own store fails; the gate is for a failed mount of one worker.
 */
@Injectable()
export class PayloadGate {
  private readonly logger = new Logger(PayloadGate.name);
  private isOpen = true;
  private isLogged = false;

  constructor(private readonly payloads: PayloadStore) {}

  /** Closes the gate after a call of the store failed with UNAVAILABLE. */
  close(error: unknown): void {
    if (!isBroomwagonError(error, 'UNAVAILABLE') || !this.isOpen) return;
    this.isOpen = false;
    // The log has the outage of the store, unless only a part of the store fails.
    this.isLogged = !outages.explains(error);
    this.logger[this.isLogged ? 'error' : 'debug'](
      { err: error },
      'No request is claimed until the payload store can be written',
    );
  }

  /** Resolves when the store takes payloads, or at the abort of the signal. Never throws. */
  async opened(signal: AbortSignal): Promise<void> {
    while (!this.isOpen && !signal.aborted) {
      try {
        await this.payloads.checkWritable();
        this.isOpen = true;
        if (this.isLogged) this.logger.log('The payload store can be written again');
      } catch (error) {
        // A full store does not close the gate: the coordinator knows the quotas and stops the claims.
        this.isOpen = isBroomwagonError(error, 'PAYLOAD_STORE_FULL');
        if (!this.isOpen) await delay(CHECK_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  }
}
