import { join } from 'node:path';
import type { Child } from '../child';
import type { Stage } from '../stage';
import type { EngineCounts } from './engine.main';
import { startPeer } from './peer';

const POOL = 'gateway';

/** One way to the engine. */
export interface Way {
  name: string;
  port: number;
  /** Processes whose CPU time counts. */
  processIds: number[];
}

export interface WayResults extends Way {
  p50Ms: number[];
  p99Ms: number[];
  perSecond: number[];
  perCoreSecond: number[];
  longPromptMs: number[];
  streamedMicroseconds: number[];
  collectedMicroseconds: number[];
}

/** A gateway that sends each token of a stream at once, however old the stream is. */
export const SINGLE_TOKENS = 'each token at once';

export const toUrl = (port: number): string => `http://127.0.0.1:${port}`;

/**
 * @param peer name of an entry of `PEERS`
 * @returns a gateway, the pass-through, the engine itself, two gateways behind one port, the second of these gateways
 *   alone, which sends each token at once, and the peer
 */
export async function startWays(
  stage: Stage,
  engine: Child<void, EngineCounts>,
  peer: string | undefined,
): Promise<WayResults[]> {
  const { port: enginePort } = await engine.ask();
  await stage.startApp('load-balancer', 'balancer', [POOL], stage.services.redis);
  const gateway = await startGateway(stage, 'gateway');
  const second = await startGateway(stage, 'gateway-2', { STREAM_BURSTS_AFTER_MS: '0' });
  const added = await fetch(`${toUrl(gateway.port)}/add_worker?url=${toUrl(enginePort)}`, { method: 'POST' });
  if (added.status !== 200) throw new Error(`The engine was not added: ${await added.text()}`);
  const passThrough = stage.child<{ engine: string }, { port: number }>('gateway/pass-through.main.js');
  const passThroughPort = (await passThrough.ask({ engine: toUrl(enginePort) })).port;
  const splitter = stage.child<{ ports: number[] }, { port: number }>('gateway/splitter.main.js');
  const { port } = await splitter.ask({ ports: [gateway.port, second.port] });
  const ways: Way[] = [
    gateway,
    { name: 'pass-through', port: passThroughPort, processIds: [passThrough.processId] },
    { name: 'engine itself', port: enginePort, processIds: [engine.processId] },
    { name: 'two gateways', port, processIds: [...gateway.processIds, ...second.processIds] },
    { ...second, name: SINGLE_TOKENS },
  ];
  if (peer !== undefined) ways.push(await startPeer(stage, peer, toUrl(enginePort)));
  return ways.map((way) => ({
    ...way,
    p50Ms: [],
    p99Ms: [],
    perSecond: [],
    perCoreSecond: [],
    longPromptMs: [],
    streamedMicroseconds: [],
    collectedMicroseconds: [],
  }));
}

async function startGateway(stage: Stage, name: string, settings: Record<string, string> = {}): Promise<Way> {
  const processId = await stage.startApp('gateway', name, [POOL], stage.services.redis, {
    POOL,
    API_KEYS: 'off',
    HTTP_HOST: '127.0.0.1',
    INCREMENTAL_STREAMS: 'true',
    ENGINE_MAX_INFLIGHT: '100000',
    ENGINE_MAX_STREAMS: '8192',
    // The young generation keeps its default size: a larger one would be counted as memory of streams.
    NODE_OPTIONS: `--require ${join(__dirname, 'collect-garbage.js')}`,
    ...settings,
  });
  return { name, port: stage.port(name), processIds: [processId] };
}
