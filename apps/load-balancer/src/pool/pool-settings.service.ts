import { Injectable, Logger } from '@nestjs/common';
import {
  BroomwagonError,
  POOL_SETTING_DEFAULTS,
  POOL_SETTING_NAMES,
  type ConfigurePoolRequest,
  type PoolSettingsReply,
  type RollbackPoolRequest,
} from '@broomwagon/contracts';
import { failpoint, InEachPool } from '@broomwagon/platform';
import { PoolDirectory, PoolStore, ServerStore, type StoredSettings } from '@broomwagon/state';
import { LoadBalancerConfig } from '../load-balancer.config';
import { WaiterAnswersService } from '../waiters/waiter-answers.service';

/** Interval at which each replica finishes changes of settings that a dead replica has begun. */
const RESUME_INTERVAL_MS = 2_000;

/** Settings of pools. Transitions read the settings in Redis, so a change holds in all replicas at once. */
@Injectable()
export class PoolSettingsService {
  private readonly logger = new Logger(PoolSettingsService.name);

  constructor(
    private readonly settings: PoolStore,
    private readonly servers: ServerStore,
    private readonly pools: PoolDirectory,
    private readonly waiters: WaiterAnswersService,
    private readonly config: LoadBalancerConfig,
  ) {}

  /**
   * Changes the named settings and keeps the others; a repeat changes nothing.
   * @throws BroomwagonError VERSION_MISMATCH, UNAVAILABLE
   */
  async configure(pool: string, { reset, ifVersion, ...set }: ConfigurePoolRequest): Promise<PoolSettingsReply> {
    await this.pools.add(pool);
    const stored = await this.settings.configure(pool, set, reset ?? [], ifVersion);
    await failpoint('load-balancer.configure.before-apply');
    return this.toReply(await this.apply(pool, stored));
  }

  /** @throws BroomwagonError UNAVAILABLE */
  async read(pool: string): Promise<PoolSettingsReply> {
    return this.toReply(await this.settings.settings(pool));
  }

  /**
   * Restores an earlier version of the settings. If a weight version is required, requires the last committed version.
   * @throws BroomwagonError VERSION_NOT_FOUND, VERSION_MISMATCH, UNAVAILABLE
   */
  async rollBack(pool: string, { version, ifVersion }: RollbackPoolRequest): Promise<PoolSettingsReply> {
    const { versions, weightVersion } = await this.settings.history(pool);
    const found = versions.find((one) => one.version === version);
    if (!found) {
      throw new BroomwagonError('VERSION_NOT_FOUND', `The history has no version ${version}`, { field: 'version' });
    }
    const [present] = versions;
    const settings = { ...found.settings };
    // Training has continued since the earlier version: no server has the old weight version any more.
    const hasGate = settings.requiredWeightVersion ?? present!.settings.requiredWeightVersion;
    if (hasGate !== undefined && weightVersion !== undefined) settings.requiredWeightVersion = weightVersion;
    return this.configure(pool, {
      ...settings,
      reset: [...POOL_SETTING_NAMES],
      ifVersion: ifVersion ?? present!.version,
    });
  }

  /** Finishes a change of settings that a dead replica has begun. @throws BroomwagonError UNAVAILABLE */
  @InEachPool('settings', RESUME_INTERVAL_MS)
  async resume(pool: string): Promise<void> {
    await this.apply(pool, await this.settings.settings(pool));
  }

  /** Scores every server for the new settings, page by page. Only then the pool uses the new policy. */
  private async apply(pool: string, stored: StoredSettings): Promise<StoredSettings> {
    if (stored.isScored) return stored;
    for await (const page of this.servers.pages('rescore', pool)) this.waiters.sendAll(pool, page);
    const applied = await this.settings.finish(pool, stored.revision);
    this.logger.log({ pool, version: applied.version, policy: applied.policy }, 'Settings of a pool were changed');
    return applied;
  }

  private toReply({ version, settings, policy, nextPolicy }: StoredSettings): PoolSettingsReply {
    const defaults = { ...POOL_SETTING_DEFAULTS, sessionIdleMs: this.config.sessionIdleMs };
    const effective = { ...defaults, ...settings, policy };
    return { version, settings, defaults, effective, policy, ...(nextPolicy === undefined ? {} : { nextPolicy }) };
  }
}
