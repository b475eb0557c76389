import type { Claim } from '@broomwagon/contracts';
import { HeldLeases } from '@broomwagon/generation';
import { WORKER, workerBench, type WorkerBench } from '../worker.fixture';
import type { WorkerConfig } from '../worker.config';
import { AttemptRegistry } from './attempt-registry';
import { AttemptRunner } from './attempt-runner';

/** A worker with one attempt that is ready to be run. */
export async function startAttempt(
  changes: (bench: WorkerBench) => Partial<Claim> = () => ({}),
  settings?: Partial<WorkerConfig>,
) {
  const bench = await workerBench(settings);
  const claim = bench.claim(changes(bench));
  const attempt = bench.module.get(AttemptRegistry).admit(claim, WORKER)!;
  const run = () => bench.module.get(AttemptRunner).run(attempt);
  return { ...bench, attempt, run, leases: bench.module.get(HeldLeases), registry: bench.module.get(AttemptRegistry) };
}

/** Fields that begin every message about the attempt of {@link startAttempt}. */
export const identity = { requestId: 'j/g/0', attempt: '1-a', ...WORKER };
