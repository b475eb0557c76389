import { randomUUID } from 'node:crypto';
import type { EngineCapabilities, EngineDialect, Epoch, JobId, ServerId } from '@broomwagon/contracts';
import type { Operations } from '../loop/operations';
import { detectEngine } from '../../../../libs/engines/src/detect-engine';

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
 * Finds the dialect and the description of every engine.
 * @param options bearer token, as the workers send it; model to ask for, by default the first that each engine lists
 * @throws BroomwagonError ENGINE_UNREACHABLE or ENGINE_PROTOCOL, naming the first address without an engine;
 *   ENGINE_REJECTED for an engine that does not serve the model
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

/** Maximum wait for requests that the previous round has cut. */
const QUIESCE_WAIT_MS = 2_000;

/** The engines of a pool, as they are registered at the load-balancer. */
export class Fleet {
  private firstVersion = 0;
  private poolVersion = 0;
  /** The last change of weights. */
  private change: { syncId: string; version: number } | undefined;

  constructor(
    private readonly operations: Operations,
    /** Registers engines; may reach the pool in another way than the trainer. */
    private readonly registry: Operations,
    public engines: readonly FleetEngine[],
    private readonly maxInflight: number,
    /** The instanceId of engines that report none. */
    private readonly runId: string,
  ) {}

  /** Maps version 0 to the first version that the pool has not had yet: the version of a pool never goes back. */
  async countOn(): Promise<void> {
    // This run has made no change yet that Redis could have lost.
    this.operations.acceptGeneration();
    const { version = -1 } = await this.operations.call('weights.status', {});
    this.firstVersion = version + 1;
  }

  /**
   * Gives all engines new weights, while no request runs or starts on them.
   * @param version counted from {@link countOn}
   * @param trainer absent before its first round
   * @returns weight version of the pool
   * @throws BroomwagonError FENCED when another trainer has taken the job over
   */
  async setWeightVersion(version: number, trainer?: { job: JobId; trainerEpoch: Epoch }): Promise<number> {
    this.change = { syncId: randomUUID(), version: this.firstVersion + version };
    await this.changeWeights(this.change, trainer);
    return this.change.version;
  }

  /**
   * Repeats the last change of weights, of which Redis may have lost any part: its begin, versions of engines, its
   * commit. The engines have these weights, unless another trainer has begun a later change.
   */
  async repeatWeights(job: JobId, trainerEpoch?: Epoch): Promise<void> {
    const { change } = this;
    const { sync, version = -1 } = await this.operations.call('weights.status', {});
    if (change === undefined || Math.max(version, sync?.version ?? -1) > change.version) return;
    if (sync === undefined && version === change.version) await this.register(version);
    else await this.changeWeights(change, trainerEpoch && { job, trainerEpoch });
  }

  private async changeWeights(
    { syncId, version }: { syncId: string; version: number },
    trainer?: { job: JobId; trainerEpoch: Epoch },
  ): Promise<void> {
    const begin = { syncId, version, mode: 'abort', waitMs: QUIESCE_WAIT_MS, ...trainer } as const;
    await this.operations.call('weights.begin', begin);
    await this.register(version);
    // The commit is refused, and repeated, while a request runs.
    await this.operations.call('weights.commit', { syncId, trainerEpoch: trainer?.trainerEpoch });
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
