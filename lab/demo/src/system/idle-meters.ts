import type { Operations } from '../../../../apps/trainer/src/loop/operations';
import type { IdleMeter } from '../../../../apps/trainer/src/loop/trainer-loop.types';
import { idleShare } from '../report/arithmetic';
import type { SimulatorClient, SimulatorState } from './simulator-client';

/** Exact: from the engines' own account of their time. */
export class SimulatorIdleMeter implements IdleMeter {
  private start: SimulatorState = { busySeconds: 0, simulatedSeconds: 0, clockLagShare: 0 };

  constructor(private readonly simulator: SimulatorClient) {}

  async begin(): Promise<void> {
    this.start = await this.simulator.state();
  }

  async end(): Promise<number | null> {
    const { busySeconds, simulatedSeconds } = await this.simulator.state();
    return idleShare(busySeconds - this.start.busySeconds, simulatedSeconds - this.start.simulatedSeconds);
  }
}

/** An estimate for real engines: the share of looks at which an engine had no request in flight, weighted by time. */
export class LeaseIdleMeter implements IdleMeter {
  private lastMs = 0;
  private idleMs = 0;
  private totalMs = 0;

  constructor(private readonly operations: Operations) {}

  async begin(): Promise<void> {
    this.lastMs = performance.now();
    this.idleMs = 0;
    this.totalMs = 0;
  }

  async observe(): Promise<void> {
    const { perServer } = await this.operations.call('lb.status', {});
    const now = performance.now();
    const elapsedMs = now - this.lastMs;
    this.lastMs = now;
    for (const { inflight } of perServer) {
      this.totalMs += elapsedMs;
      if (inflight === 0) this.idleMs += elapsedMs;
    }
  }

  async end(): Promise<number | null> {
    return this.totalMs === 0 ? null : this.idleMs / this.totalMs;
  }
}
