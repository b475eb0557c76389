import type { Epoch } from '@broomwagon/contracts';
import type { ServiceBench } from './service-bench';

/** Begins a pool with the server `s1`, the worker `w` with a lease, and the job `job` with the open round `r1`. */
export async function fillPool(bench: ServiceBench): Promise<{ workerEpoch: Epoch; serverEpoch: Epoch }> {
  await bench.begin();
  const { client, pool, engine } = bench;
  // The server is not probed: its load would change the state of the pool at any time.
  const server = { serverId: 's1', endpoint: engine.url, dialect: 'vllm' as const, maxInflight: 64, probe: false };
  await client.call(pool, 'server.register', server);
  await bench.submit(2);
  const registration = { workerId: 'w', registrationId: 'r', ttlMs: 600_000 };
  const { workerEpoch } = await client.call(pool, 'worker.register', registration);
  const acquire = { acquireId: 'a', requestId: 'r', sessionId: 's', workerId: 'w', workerEpoch, waitMs: 10_000 };
  const { epoch: serverEpoch } = await client.call(pool, 'lb.acquire', acquire);
  return { workerEpoch, serverEpoch };
}
