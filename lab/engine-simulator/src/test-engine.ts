import { ENGINE_PRESETS, type EngineParameters } from '@broomwagon/models';
import { startSimulator, type RunningSimulator, type SimulatorOptions } from './simulator';
import { lengthSource } from './tokens/length-source';
import type { ZooSelection } from './zoo/active-zoo';
import type { RequestRow } from './engine/simulated-engine.types';

/** Starts one fast engine on a free port, for tests. */
export async function startEngine(
  dialect: SimulatorOptions['dialect'],
  options: Partial<SimulatorOptions> & { parameters?: EngineParameters } = {},
): Promise<RunningSimulator & { url: string }> {
  const simulator = await startSimulator({
    engines: 1,
    dialect,
    model: 'simulated',
    parameters: ENGINE_PRESETS['7b-8k'],
    lengths: lengthSource('math-short-8k', 1),
    speed: 100,
    host: '127.0.0.1',
    port: 0,
    tickMs: 5,
    streamMs: 10,
    maxModelTokens: 131_072,
    cumulative: false,
    ...options,
  });
  return { ...simulator, url: simulator.servers[0]!.url };
}

export interface SimulatorState {
  running: number;
  waiting: number;
  resumeMismatches: number;
  clockLagShare: number;
  tokensMade: number;
  prefillTokens: number;
  /** Number of hits in the prefix cache on prompts that other weights had computed. */
  cachedByOtherWeights: number;
  busySeconds: number;
  simulatedSeconds: number;
  requests: { received: number; stop: number; length: number; abort: number };
  table: RequestRow[];
  controls: { path: string; body: Record<string, unknown> }[];
  /** Sessions that use the prefix cache, and the number of sessions that were closed. */
  sessions: { open: string[]; closed: number };
  /** Number of requests that the fault `late` holds back. */
  late: number;
}

export async function fetchState(url: string): Promise<SimulatorState> {
  return (await (await fetch(`${url}/simulator/state`)).json()) as SimulatorState;
}

/** Number of requests in the engine at this moment. */
export async function inEngine(url: string): Promise<number> {
  const { table } = await fetchState(url);
  return table.filter(({ state }) => state === 'running' || state === 'waiting').length;
}

export async function inject(
  url: string,
  fault: { kind: string; count?: number; afterTokens?: number },
): Promise<void> {
  await fetch(`${url}/simulator/fault`, { method: 'POST', body: JSON.stringify(fault) });
}

/** Replaces the behaviours of the zoo. */
export async function selectZoo(url: string, selection: ZooSelection): Promise<void> {
  const { ok } = await fetch(`${url}/simulator/zoo`, { method: 'POST', body: JSON.stringify(selection) });
  if (!ok) throw new RangeError(`The engine knows no behaviours ${selection.entries.join(', ')}`);
}
