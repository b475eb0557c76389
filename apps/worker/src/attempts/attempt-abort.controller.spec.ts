import { HeldLeases, WorkerSession } from '@broomwagon/generation';
import { describe, expect, it } from 'vitest';
import { WORKER, workerBench } from '../worker.fixture';
import { AttemptAbortController } from './attempt-abort.controller';
import { AttemptRegistry } from './attempt-registry';

describe('AttemptAbortController', () => {
  it('stops attempts and leases that the command names, and nothing of another epoch', async () => {
    const { module, claim } = await workerBench();
    await module.get(WorkerSession).established();
    const registry = module.get(AttemptRegistry);
    const [first, second, third] = [0, 1, 2].map((sampleIndex) =>
      registry.admit(claim({ requestId: `j/g/${sampleIndex}`, sampleIndex }), WORKER)!,
    );
    module.get(HeldLeases).granted(second!, `7.${second!.acquireId}`);
    module.get(HeldLeases).granted(third!, `8.${third!.acquireId}`);
    const controller = module.get(AttemptAbortController);
    const command = {
      workerEpoch: WORKER.workerEpoch,
      cause: 'abort' as const,
      attempts: [{ requestId: 'j/g/0', attempt: '1-a' }],
      leases: [
        { leaseId: `7.${second!.acquireId}`, requestId: 'j/g/1' },
        // An ended lease of the same acquire.
        { leaseId: `1.${third!.acquireId}`, requestId: 'j/g/2' },
      ],
    };
    expect(controller.abort({ ...command, workerEpoch: 'old' })).toEqual({ stopped: 0 });
    expect(controller.abort(command)).toEqual({ stopped: 2 });
    expect([first, second, third].map((attempt) => attempt!.cause)).toEqual(['abort', 'abort', undefined]);
  });
});
