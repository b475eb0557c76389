import { MEASURED } from './measured';

/** What a fleet does all the time. */
export interface Workload {
  gpus: number;
  gpusPerEngine: number;
  inFlightPerEngine: number;
  /** Of one request. */
  tokensPerSecond: number;
  /** Mean length of a response. */
  tokens: number;
  samplesPerGroup: number;
  saveIntervalSeconds: number;
}

/** Of each core: what is left is for bursts, and for a replica that fails. */
export const BUSY_SHARE = 0.5;
/** Streams of one worker (CONCURRENCY) that its core carries at most. */
const WORKER_STREAMS = 1_024;
const REPLICAS = 2;
/** A network card of 10 Gbit/s. */
const NETWORK_BYTES_PER_SECOND = 1.25e9;
/** New work stops and payloads are refused above it (docs/operations.md). */
const MEMORY_SHARE = 0.75;
/** Messages of a request but for its saves: claim, acquire, release, complete, each with its reply, and an event. */
const MESSAGES_OF_REQUEST = 9;

const { redis, loadBalancer, coordinator, nats, worker, gateway } = MEASURED;

/** What one request in flight costs each part, in a second. */
export function loadOf({ tokens, tokensPerSecond, saveIntervalSeconds }: Workload) {
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
    // Each save has all tokens so far, the mean of which is half of a response.
    payloadBytesPerSecond: savesPerSecond * (tokens / 2) * redis.tokenBytes,
  };
}

/** Replicas and sizes of each part for a fleet. */
export function sizeOf(workload: Workload) {
  const { gpus, gpusPerEngine, inFlightPerEngine, tokens, samplesPerGroup } = workload;
  const engines = Math.ceil(gpus / gpusPerEngine);
  const inFlight = engines * inFlightPerEngine;
  const load = loadOf(workload);
  const replicas = (cores: number) => Math.max(REPLICAS, Math.ceil((inFlight * cores) / BUSY_SHARE));
  const pools = Math.max(1, Math.ceil((inFlight * load.redisCores) / BUSY_SHARE));
  const memory =
    pools * redis.poolBytes +
    // As many requests have ended and wait for the end of their round as run.
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

/** How many requests in flight fill one instance of each part, the fullest first. */
export function limitsOf(workload: Workload): { part: string; inFlight: number }[] {
  const load = loadOf(workload);
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
