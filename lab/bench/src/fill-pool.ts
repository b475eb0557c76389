import type { ServerRegistration, ServerStore, WorkerStore } from '@broomwagon/state';
import type { BenchWorker } from './generator/jobs';

const PAGE = 128;
/** Time long enough that nothing expires during a measurement. */
export const LONG_MS = 86_400_000;
type Server = ServerRegistration;

export interface Stores {
  servers: Pick<ServerStore, 'register'>;
  workers: Pick<WorkerStore, 'register'>;
}

/** Registers servers with room for all leases, and workers. @param fields of each server that replace the defaults */
export async function fillPool(
  { servers: registry, workers: epochs }: Stores,
  pool: string,
  servers: number,
  workers = 8,
  fields: Partial<Server> = {},
): Promise<BenchWorker[]> {
  for (let first = 0; first < servers; first += PAGE) {
    const page = Array.from({ length: Math.min(PAGE, servers - first) }, (_, offset) => first + offset);
    await Promise.all(page.map((index) => registry.register(pool, { ...buildServer(index), ...fields })));
  }
  const ids = Array.from({ length: workers }, (_, index) => `worker-${index}`);
  return Promise.all(
    ids.map(async (workerId) => {
      const registration = { workerId, registrationId: 'bench', ttlMs: LONG_MS };
      return { workerId, workerEpoch: (await epochs.register(pool, registration)).workerEpoch };
    }),
  );
}

function buildServer(index: number): Server {
  return {
    serverId: `server-${index}`,
    endpoint: `http://10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}:8000`,
    dialect: 'vllm',
    probe: false,
    instanceId: 'bench',
    model: 'model',
    maxInflight: 1_000_000,
    weight: 1,
    weightVersion: 0,
  };
}
