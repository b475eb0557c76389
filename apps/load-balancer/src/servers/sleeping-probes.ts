import { Injectable } from '@nestjs/common';
import { Periodically } from '@broomwagon/platform';
import { PoolDirectory } from '@broomwagon/state';
import { LoadBalancerConfig } from '../load-balancer.config';
import { ProbeService } from './probe.service';

const INTERVAL_MS = 30_000;

/** Probes the servers of sleeping pools, less often than the servers of other pools. */
@Injectable()
export class SleepingProbes {
  constructor(
    private readonly directory: PoolDirectory,
    private readonly prober: ProbeService,
    private readonly config: LoadBalancerConfig,
  ) {}

  @Periodically('sleeping-probes', INTERVAL_MS, { isImmediate: true })
  async probe(): Promise<void> {
    if (this.config.servedPools() !== '*') return;
    for (const pool of await this.directory.asleep()) {
      if ((await this.directory.readActivity(pool)).servers > 0) await this.prober.probe(pool);
    }
  }
}
