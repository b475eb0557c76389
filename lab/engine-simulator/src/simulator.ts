import type { EngineDialect } from '@broomwagon/contracts';
import type { EngineParameters } from '@broomwagon/models';
import { KvStore, type KvStoreOptions } from './engine/kv-store';
import { LockstepGroup } from './engine/lockstep-group';
import { SimulatedEngine } from './engine/simulated-engine';
import { newClock } from './engine/wall-clock';
import type { ExpertsOption } from './http/expert-rows';
import { EngineServer } from './http/engine-server';
import type { LengthSource } from './tokens/length-source';
import { SampleIdentities } from './tokens/sample-identity';

export interface SimulatorOptions {
  /** Number of engines to host in this process. */
  engines: number;
  dialect: EngineDialect;
  model: string;
  parameters: EngineParameters;
  lengths: LengthSource;
  /** Simulated seconds per wall second. */
  speed: number;
  host: string;
  /** First port, the others follow; 0 takes free ports. */
  port: number;
  /** Ports of all engines, instead of `port`, such as the ports of an earlier run. */
  ports?: readonly number[];
  /** Wall time between two steps of the model, milliseconds. */
  tickMs: number;
  /** Wall time between two chunks of one stream, milliseconds. */
  streamMs: number;
  maxModelTokens: number;
  /** SGLang: whether chunks repeat all tokens so far. */
  cumulative: boolean;
  /** Tokens of one event (`--stream-interval` of the engine); default 1: as many as there are. */
  streamInterval?: number;
  /** Whether tokens depend on the call's seed and position only; default false: on prompt and sample. */
  noise?: boolean;
  /** Whether vLLM has the routes of `--enable-scale-out`, such as the route that parses the tokens of a chat. */
  scaleOut?: boolean;
  /** Number of tokens at the start of each chat message that are its reasoning; default 0. */
  reasoningTokens?: number;
  /** Form of routed experts, for requests that ask for them; default: none. */
  experts?: ExpertsOption;
  /** Whether all engines decode in lockstep, as data-parallel ranks do: a step takes as long as the slowest needs. */
  lockstep?: boolean;
  /** Store in which all engines keep KV caches; default: none. */
  kvStore?: KvStoreOptions;
  /** Behaviours of real engines, by their names in the zoo; default: none. */
  zoo?: readonly string[];
  /** SGLang: whether the prefix cache counts the sessions that use its prompts, and closed sessions release them. */
  sessionCache?: boolean;
  /** Number of processes that each engine reports; default 1. */
  ranks?: number;
}

export interface RunningSimulator {
  servers: { serverId: string; url: string }[];
  /** Changes the simulated seconds per wall second. Not for engines in lockstep. */
  setSpeed(speed: number): void;
  close(): Promise<void>;
}

/** Starts all engines on one ticker. Rejects, with nothing left open, if a port is not available. */
export async function startSimulator(options: SimulatorOptions): Promise<RunningSimulator> {
  const identities = new SampleIdentities(options.noise);
  const now = (): number => performance.now();
  const kvStore = options.kvStore && new KvStore(options.kvStore);
  const lockstep = options.lockstep ? new LockstepGroup(newClock(options, now())) : undefined;
  const engines = Array.from(
    { length: options.engines },
    (_, index) => new SimulatedEngine({ ...options, lockstep, kvStore, serverId: `engine-${index}`, now }),
  );
  const servers = engines.map((engine) => new EngineServer({ ...options, engine, identities }));
  const ticker = setInterval(() => {
    for (const engine of engines) engine.tick();
  }, options.tickMs);
  const close = async (): Promise<void> => {
    clearInterval(ticker);
    await Promise.all(servers.map((server) => server.close()));
  };
  const setSpeed = (speed: number): void => {
    for (const engine of engines) engine.setSpeed(speed);
  };
  try {
    const urls = [];
    for (const [index, server] of servers.entries()) {
      const wanted = options.ports?.[index] ?? (options.port === 0 ? 0 : options.port + index);
      const port = await server.listen(options.host, wanted);
      const name = options.host === '0.0.0.0' ? '127.0.0.1' : options.host;
      urls.push({ serverId: engines[index]!.options.serverId, url: `http://${name}:${port}` });
    }
    return { servers: urls, setSpeed, close };
  } catch (error) {
    await close();
    throw error;
  }
}
