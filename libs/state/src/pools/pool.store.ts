import { Injectable } from '@nestjs/common';
import {
  POOL_SETTING_NAMES,
  type LoadBalancerStatus,
  type PausePoolReply,
  type PoolSettings,
  type PoolSettingsReply,
  type PoolVersion,
  type RoutingPolicy,
} from '@broomwagon/contracts';
import { transition } from '../library/function-runner';
import { createStoreClass } from '../library/store-of';
import type { WaiterAnswers } from '../leases/grants';

/** Settings of a pool, and whether its servers are scored by them. */
export interface StoredSettings extends PoolSettingsReply {
  /** False while a change is under way: page through {@link ServerStore.rescore}, then call `finish`. */
  isScored: boolean;
  /** Number of the changes of settings and weights: servers are scored again after each. */
  revision: number;
}
interface RawSettings {
  settings: Record<string, string>;
  version: number;
  revision: number;
  isScored: boolean;
  policy: RoutingPolicy;
  nextPolicy?: RoutingPolicy;
}
interface SettingsChange {
  set: Record<string, string>;
  reset: readonly string[];
  ifVersion?: number;
}
interface RawVersion extends Omit<PoolVersion, 'settings'> {
  settings: Record<string, string>;
}
export type PoolTotals = Omit<LoadBalancerStatus, 'pool' | 'perServer'>;

/** Transition that changes the settings, or only reads them. */
const configurePool = transition<SettingsChange, RawSettings>('pools/configure');
const TRANSITIONS = {
  history: transition<object, { versions: RawVersion[]; weightVersion?: number }>('pools/history'),
  finish: transition<{ revision: number }, RawSettings>('pools/finish-settings'),
};
const TEXTS = new Set<string>(['policy', 'groupPlacement', 'sessionAdmission']);

/** The last versions of the settings, latest first, and the version of the weights that was committed last. */
export interface SettingsHistory {
  versions: PoolVersion[];
  weightVersion?: number;
}

@Injectable()
export class PoolStore extends createStoreClass({
  /** Pauses the pool, or resumes it and grants free room to waiters. `overdueOnly`: resumes it at its deadline. */
  pause: transition<{ paused: boolean; deadlineMs?: number; overdueOnly?: boolean }, PausePoolReply & WaiterAnswers>(
    'pools/pause',
  ),
  status: transition<object, PoolTotals>('pools/status'),
}) {
  /**
   * Changes settings; a repeat changes nothing. A new policy takes over at `finish`.
   * @throws BroomwagonError VERSION_MISMATCH
   */
  async configure(
    pool: string,
    set: PoolSettings,
    reset: readonly string[] = [],
    ifVersion?: number,
  ): Promise<StoredSettings> {
    const texts: Record<string, string> = {};
    for (const name of POOL_SETTING_NAMES) if (set[name] != null) texts[name] = String(set[name]);
    return toSettings(await this.runner.run(configurePool, pool, { set: texts, reset, ifVersion }));
  }

  /** Puts the next policy in force, after a pass over all servers that started when the settings had this revision. */
  async finish(pool: string, revision: number): Promise<StoredSettings> {
    return toSettings(await this.runner.run(TRANSITIONS.finish, pool, { revision }));
  }

  async settings(pool: string): Promise<StoredSettings> {
    return toSettings(await this.runner.run(configurePool, pool, { set: {}, reset: [] }));
  }

  async history(pool: string): Promise<SettingsHistory> {
    const { versions, weightVersion } = await this.runner.run(TRANSITIONS.history, pool, {});
    const named = versions.map(({ settings, ...version }) => ({ ...version, settings: namedSettings(settings) }));
    return { versions: named, weightVersion };
  }
}

function toSettings({ settings, ...rest }: RawSettings): StoredSettings {
  return { ...rest, settings: namedSettings(settings) };
}

function namedSettings(texts: Record<string, string>): PoolSettings {
  const named = POOL_SETTING_NAMES.filter((name) => texts[name] !== undefined).map((name) => [
    name,
    TEXTS.has(name) || texts[name] === 'never' ? texts[name] : Number(texts[name]),
  ]);
  return Object.fromEntries(named) as PoolSettings;
}
