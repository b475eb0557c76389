import type { Operations } from '../../../reference-trainer/src/loop/operations';
import type { EngineMeter } from '../../../reference-trainer/src/loop/trainer-loop.types';
import { idleShare } from '../report/arithmetic';
import type { SimulatorClient, SimulatorState } from './simulator-client';

/** Exact meter, which reads the simulated engines' own counts of their time. */
export class SimulatorIdleMeter implements EngineMeter {
  private start: SimulatorState = { busySeconds: 0, busyOfEngine: [], simulatedSeconds: 0, clockLagShare: 0 };

  constructor(private readonly simulator: SimulatorClient) {}

  async begin(): Promise<void> {
    this.start = await this.simulator.state();
  }

  async end(): ReturnType<EngineMeter['end']> {
    const { start } = this;
    const { busySeconds, busyOfEngine, simulatedSeconds } = await this.simulator.state();
    return {
      idleShare: idleShare(busySeconds - start.busySeconds, simulatedSeconds - start.simulatedSeconds),
      engineSeconds: Math.max(...busyOfEngine.map((seconds, engine) => seconds - (start.busyOfEngine[engine] ?? 0))),
    };
  }
}

/** Estimate for real engines: share of observations without requests in flight on an engine, weighted by time. */
export class LeaseIdleMeter implements EngineMeter {
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

  async end(): ReturnType<EngineMeter['end']> {
    return { idleShare: this.totalMs === 0 ? null : this.idleMs / this.totalMs, engineSeconds: null };
  }
}
