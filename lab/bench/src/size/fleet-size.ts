import { MEASURED } from './measured';

/** Constant load of a fleet. */
export interface Workload {
  gpus: number;
  gpusPerEngine: number;
  inFlightPerEngine: number;
  /** Tokens per second of one request. */
  tokensPerSecond: number;
  /** Mean length of a response, tokens. */
  tokens: number;
  samplesPerGroup: number;
  saveIntervalSeconds: number;
}

/** Share of each core that is used; the rest is for bursts, and for the load of a failed replica. */
export const BUSY_SHARE = 0.5;
/** Most streams (CONCURRENCY) that one core carries in a worker. */
const WORKER_STREAMS = 1_024;
const REPLICAS = 2;
/** Rate of a network card of 10 Gbit/s. */
const NETWORK_BYTES_PER_SECOND = 1.25e9;
/** Share of memory above which new work stops and payloads are refused (docs/operations.md). */
const MEMORY_SHARE = 0.75;
/** Messages of a request without its saves: claim, acquire, release, complete, each with its reply, and an event. */
const MESSAGES_OF_REQUEST = 9;

const { redis, loadBalancer, coordinator, nats, worker, gateway } = MEASURED;

/** Load of one request in flight on each part, per second. */
export function computeLoad({ tokens, tokensPerSecond, saveIntervalSeconds }: Workload) {
  const endsPerSecond = tokensPerSecond / tokens;
  const savesPerSecond = 1 / saveIntervalSeconds + endsPerSecond;
  const redisUs = redis.submitUs + redis.claimUs + redis.acquireUs + redis.releaseUs + redis.completeUs;
  return {
    endsPerSecond,
    savesPerSecond,
    redisCores: (endsPerSecond * redisUs + savesPerSecond * redis.saveUs) / 1e6,
    loadBalancerCores: (endsPerSecond * loadBalancer.pairUs) / 1e6,
    coordinatorCores: (endsPerSecond * coordinator.requestUs + savesPerSecond * coordinator.saveUs) / 1e6,
    natsCores: ((endsPerSecond * MESSAGES_OF_REQUEST + savesPerSecond * 2) * nats.messageUs) / 1e6,
    workerCores: (tokensPerSecond * worker.tokenUs + savesPerSecond * worker.saveUs) / 1e6,
    gatewayCores: (tokensPerSecond * gateway.tokenUs) / 1e6,
    // Each save has all tokens so far: on average half of a response.
    payloadBytesPerSecond: savesPerSecond * (tokens / 2) * redis.tokenBytes,
  };
}

/** Replicas and sizes of each part for a fleet. */
export function computeSize(workload: Workload) {
  const { gpus, gpusPerEngine, inFlightPerEngine, tokens, samplesPerGroup } = workload;
  const engines = Math.ceil(gpus / gpusPerEngine);
  const inFlight = engines * inFlightPerEngine;
  const load = computeLoad(workload);
  const replicas = (cores: number) => Math.max(REPLICAS, Math.ceil((inFlight * cores) / BUSY_SHARE));
  const pools = Math.max(1, Math.ceil((inFlight * load.redisCores) / BUSY_SHARE));
  const memory =
    pools * redis.poolBytes +
    // For each running request there is a finished request that waits for the end of its round.
    inFlight * (redis.runningBytes + redis.finishedBytes + redis.leaseBytes) +
    ((2 * inFlight) / samplesPerGroup) * redis.groupBytes +
    engines * redis.serverBytes;
  const workers = Math.max(replicas(load.workerCores), Math.ceil(inFlight / WORKER_STREAMS));
  return {
    engines,
    inFlight,
    requestsPerSecond: inFlight * load.endsPerSecond,
    savesPerSecond: inFlight * load.savesPerSecond,
    pools,
    redisCores: inFlight * load.redisCores,
    redisMaxmemoryBytes: memory / MEMORY_SHARE,
    payloadBytes: (inFlight * (tokens / 2 + tokens) * redis.tokenBytes) / MEMORY_SHARE,
    payloadBytesPerSecond: inFlight * load.payloadBytesPerSecond,
    natsCores: inFlight * load.natsCores,
    loadBalancers: replicas(load.loadBalancerCores),
    coordinators: replicas(load.coordinatorCores),
    workers,
    requestsPerWorker: Math.ceil(inFlight / workers),
    workerBytes: worker.idleBytes + (inFlight / workers) * worker.streamBytes,
    gateways: Math.max(replicas(load.gatewayCores), Math.ceil(inFlight / gateway.streams)),
    startSeconds: (inFlight * redis.startUs) / 1e6 / pools,
  };
}

/** Number of requests in flight that one instance of each part can carry, the lowest first. */
export function computeLimits(workload: Workload): { part: string; inFlight: number }[] {
  const load = computeLoad(workload);
  const parts: [string, number][] = [
    ['Redis, main thread (one pool)', load.redisCores],
    ['NATS, one core', load.natsCores],
    ['load-balancer, one replica', load.loadBalancerCores],
    ['trainer-coordinator, one replica', load.coordinatorCores],
    ['worker, one replica', load.workerCores],
    ['gateway, one replica', load.gatewayCores],
  ];
  return [
    ...parts.map(([part, cores]) => ({ part, inFlight: Math.floor(1 / cores) })),
    {
      part: 'payload store, 10 Gbit/s of partial saves',
      inFlight: Math.floor(NETWORK_BYTES_PER_SECOND / load.payloadBytesPerSecond),
    },
  ].sort((one, other) => one.inFlight - other.inFlight);
}
