import { Injectable, Logger } from '@nestjs/common';
import { failpoint, InEachPool } from '@broomwagon/platform';
import { LeaseStore } from '@broomwagon/state';
import { WaiterAnswersService } from '../waiters/waiter-answers.service';
import { LoadBalancerConfig } from '../load-balancer.config';
import { LoadBalancerMetrics } from '../load-balancer.metrics';

/**
 * Returns the leases of expired worker and server epochs, and moves the waiters of lost servers, page by page. A sweep
 * may stop at any page, and all replicas may sweep at once.
 */
@Injectable()
export class SweepService {
  private readonly logger = new Logger(SweepService.name);
  private readonly underWay = new Map<string, Promise<void>>();

  constructor(
    private readonly store: LeaseStore,
    private readonly waiters: WaiterAnswersService,
    private readonly metrics: LoadBalancerMetrics,
  ) {}

  /** Sweeps the pool in the background. After an error the next periodic sweep continues. */
  soon(pool: string): void {
    this.sweep(pool).catch((error: unknown) => this.logger.warn({ err: error, pool }, 'The sweep failed'));
  }

  /** Sweeps until nothing is left; a second call waits for the running sweep of this process. */
  @InEachPool('sweep', (config: LoadBalancerConfig) => config.upkeepIntervalMs)
  sweep(pool: string): Promise<void> {
    let run = this.underWay.get(pool);
    if (!run) {
      run = this.pages(pool).finally(() => this.underWay.delete(pool));
      this.underWay.set(pool, run);
    }
    return run;
  }

  private async pages(pool: string): Promise<void> {
    for await (const page of this.store.whileMore('sweep', pool)) {
      this.waiters.send(pool, page);
      this.metrics.leasesReaped.inc(page.returned);
      if (page.grantsLeft) await this.waiters.grant(pool);
      if (page.returned > 0) await failpoint('load-balancer.sweep.between-pages');
    }
  }
}
