import { type FleetCosts, splitSave } from '../fleet/fleet-costs';
import type { Part } from '../fleet/processes';
import { MEASURED, REDIS, WORKER_IDLE_BYTES } from './measured';

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
const REPLICAS = 2;
/** Rate of a network card of 10 Gbit/s. */
const NETWORK_BYTES_PER_SECOND = 1.25e9;
/** Share of memory above which new work stops and payloads are refused (docs/operations.md). */
const MEMORY_SHARE = 0.75;

/** Load of one request in flight on each part, per second. */
export function computeLoad(workload: Workload, costs: FleetCosts = MEASURED) {
  const { tokens, tokensPerSecond, saveIntervalSeconds, inFlightPerEngine } = workload;
  const endsPerSecond = tokensPerSecond / tokens;
  const savesPerSecond = 1 / saveIntervalSeconds;
  // The end of a response stores all its tokens once more.
  const storedTokens = tokensPerSecond * (1 + costs.savedOverMade);
  const cores = (part: Part, heldUs = costs.heldUs[part]): number => {
    const { fixedUs, tokenUs } = splitSave(costs, part);
    const storedUs = savesPerSecond * fixedUs + storedTokens * tokenUs;
    return (heldUs + storedUs + endsPerSecond * costs.responseUs[part]) / 1e6;
  };
  const gatewayUs = tokensPerSecond * costs.tokenUs.gateway + endsPerSecond * costs.gatewayResponseUs.gateway;
  return {
    endsPerSecond,
    savesPerSecond,
    redisCores: cores('redis'),
    payloadCores: cores('payloads'),
    loadBalancerCores: cores('balancer', costs.heldUs.balancer + costs.engineUs / inFlightPerEngine),
    coordinatorCores: cores('coordinator'),
    natsCores: cores('nats'),
    workerCores: cores('worker', tokensPerSecond * costs.tokenUs.worker),
    gatewayCores: gatewayUs / 1e6,
    payloadBytesPerSecond: storedTokens * costs.tokenBytes,
  };
}

/** Replicas and sizes of each part for a fleet. */
export function computeSize(workload: Workload, costs: FleetCosts = MEASURED) {
  const { gpus, gpusPerEngine, inFlightPerEngine, tokens, samplesPerGroup } = workload;
  const engines = Math.ceil(gpus / gpusPerEngine);
  const inFlight = engines * inFlightPerEngine;
  const load = computeLoad(workload, costs);
  const half = (cores: number) => Math.ceil((inFlight * cores) / BUSY_SHARE);
  const replicas = (cores: number) => Math.max(REPLICAS, half(cores));
  const pools = Math.max(1, half(load.redisCores));
  const payloadStores = Math.max(1, half(load.payloadCores));
  const memory =
    pools * REDIS.poolBytes +
    // For each running request there is a finished request that waits for the end of its round.
    inFlight * (REDIS.runningBytes + REDIS.finishedBytes + REDIS.leaseBytes) +
    ((2 * inFlight) / samplesPerGroup) * REDIS.groupBytes +
    engines * REDIS.serverBytes;
  const workers = Math.max(replicas(load.workerCores), Math.ceil(inFlight / costs.heldRequests.worker));
  const gateways = Math.max(replicas(load.gatewayCores), Math.ceil(inFlight / costs.heldRequests.gateway));
  const [loadBalancers, coordinators] = [replicas(load.loadBalancerCores), replicas(load.coordinatorCores)];
  const primaries = pools + payloadStores;
  return {
    engines,
    inFlight,
    requestsPerSecond: inFlight * load.endsPerSecond,
    savesPerSecond: inFlight * load.savesPerSecond,
    pools,
    payloadStores,
    primaries,
    redisCores: inFlight * load.redisCores,
    redisMaxmemoryBytes: memory / MEMORY_SHARE,
    payloadCores: inFlight * load.payloadCores,
    payloadBytes: (inFlight * (tokens / 2 + tokens) * costs.tokenBytes) / MEMORY_SHARE,
    payloadBytesPerSecond: inFlight * load.payloadBytesPerSecond,
    natsCores: inFlight * load.natsCores,
    loadBalancers,
    coordinators,
    workers,
    requestsPerWorker: Math.ceil(inFlight / workers),
    workerBytes: WORKER_IDLE_BYTES + (inFlight / workers) * costs.requestBytes.worker,
    gateways,
    cores: workers + coordinators + loadBalancers + primaries + Math.max(1, half(load.natsCores)),
    startSeconds: (inFlight * REDIS.startUs) / 1e6 / pools,
  };
}

/** Number of requests in flight that one instance of each part can carry, the lowest first. */
export function computeLimits(workload: Workload): { part: string; inFlight: number }[] {
  const load = computeLoad(workload);
  const parts: [string, number][] = [
    ['Redis, main thread (one pool)', load.redisCores],
    ['Redis of payloads, main thread', load.payloadCores],
    ['NATS, one core', load.natsCores],
    ['load-balancer, one replica', load.loadBalancerCores],
    ['trainer-coordinator, one replica', load.coordinatorCores],
    ['worker, one replica', load.workerCores],
    ['gateway, one replica', load.gatewayCores],
  ];
  return [
    // A part whose costs were not measured has no limit.
    ...parts.filter(([, cores]) => cores > 0).map(([part, cores]) => ({ part, inFlight: Math.floor(1 / cores) })),
    {
      part: 'payload store, 10 Gbit/s of partial saves',
      inFlight: Math.floor(NETWORK_BYTES_PER_SECOND / load.payloadBytesPerSecond),
    },
  ].sort((one, other) => one.inFlight - other.inFlight);
}
