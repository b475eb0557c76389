import { randomUUID } from 'node:crypto';
import type { EngineCapabilities, EngineDialect, Epoch, JobId, ServerId } from '@broomwagon/contracts';
import { detectEngine } from '@broomwagon/engines';
import type { Operations } from '../loop/operations';

/** An engine that answers and whose dialect is known. */
export interface FleetEngine {
  serverId: ServerId;
  endpoint: string;
  dialect: EngineDialect;
  model?: string;
  instanceId?: string;
  capabilities: EngineCapabilities;
}

/**
 * Asks every engine what it is.
 * @param options bearer token, as the workers send it; model to ask for, default the first that each lists
 * @throws BroomwagonError ENGINE_UNREACHABLE or ENGINE_PROTOCOL, naming the first engine that is not one;
 *   ENGINE_REJECTED for one that does not serve the model
 */
export function findEngines(
  urls: readonly string[],
  name: (index: number) => string,
  options: { apiKey?: string; model?: string } = {},
): Promise<FleetEngine[]> {
  return Promise.all(
    urls.map(async (endpoint, index) => {
      // The load-balancer reads the list of models itself, as often as it changes.
      const { adapter, models: _models, ...described } = await detectEngine(endpoint, options);
      return {
        serverId: name(index),
        endpoint,
        dialect: adapter.dialect,
        ...described,
      };
    }),
  );
}

/** What the round before has cut needs a moment to end. */
const QUIESCE_WAIT_MS = 2_000;

/** The engines of a pool, as they are registered at the load-balancer. */
export class Fleet {
  private firstVersion = 0;
  private poolVersion = 0;

  constructor(
    private readonly operations: Operations,
    /** Where engines are registered: it may be another way to the pool than that of the trainer. */
    private readonly registry: Operations,
    public engines: readonly FleetEngine[],
    private readonly maxInflight: number,
    /** The instanceId of engines that report none. */
    private readonly runId: string,
  ) {}

  /** The version of a pool never goes back: what is version 0 from here on is one that it has not had yet. */
  async countOn(): Promise<void> {
    // Of what begins now nothing can be lost.
    this.operations.acceptGeneration();
    const { version = -1 } = await this.operations.call('weights.status', {});
    this.firstVersion = version + 1;
  }

  /**
   * Gives all engines new weights, while nothing runs on them and nothing is begun.
   * @param version counted from {@link countOn}
   * @param trainer absent before its first round
   * @returns that of the pool
   * @throws BroomwagonError FENCED when another trainer has taken the job over
   */
  async setWeightVersion(version: number, trainer?: { job: JobId; trainerEpoch: Epoch }): Promise<number> {
    const syncId = randomUUID();
    const poolVersion = this.firstVersion + version;
    const begin = { syncId, version: poolVersion, mode: 'abort', waitMs: QUIESCE_WAIT_MS, ...trainer } as const;
    await this.operations.call('weights.begin', begin);
    await this.register(poolVersion);
    // Refused, and repeated, as long as something runs.
    await this.operations.call('weights.commit', { syncId, trainerEpoch: trainer?.trainerEpoch });
    return poolVersion;
  }

  /** Registers all engines with these weights. The same start of an engine keeps its epoch. */
  async register(weightVersion: number): Promise<void> {
    this.poolVersion = weightVersion;
    await Promise.all(
      this.engines.map((engine) =>
        this.registry.call('server.register', {
          ...engine,
          instanceId: engine.instanceId ?? this.runId,
          maxInflight: this.maxInflight,
          weightVersion,
        }),
      ),
    );
  }

  /** Registers restarted engines; a restarted engine has lost its requests. */
  async findAgain(): Promise<void> {
    const urls = this.engines.map(({ endpoint }) => endpoint);
    const serverIds = this.engines.map(({ serverId }) => serverId);
    this.engines = await findEngines(urls, (index) => serverIds[index]!);
    await this.register(this.poolVersion);
  }
}
