import { Injectable } from '@nestjs/common';
import {
  POOL_SETTING_NAMES,
  type DecisionRecord,
  type PoolSettings,
  type PoolSettingsReply,
  type RoutingPolicy,
} from '@broomwagon/contracts';
import { transition, FunctionRunner } from '../library/function-runner';

/** Settings of a pool, and whether its servers stand where these say. */
export interface StoredSettings extends PoolSettingsReply {
  /** False while a change is under way: page through {@link ServerStore.rescore}, then call `finish`. */
  isScored: boolean;
}
interface RawSettings {
  settings: Record<string, string>;
  version: number;
  isScored: boolean;
  policy: RoutingPolicy;
  nextPolicy?: RoutingPolicy;
}
export interface DecisionPage {
  decisions: DecisionRecord[];
  more: boolean;
}

const SCRIPTS = {
  configure: transition<{ set: Record<string, string>; reset: readonly string[] }, RawSettings>('pools/configure'),
  finish: transition<{ version: number }, RawSettings>('pools/finish-settings'),
  settings: transition<object, RawSettings>('pools/read-settings'),
  decisions: transition<{ before?: number; limit: number; full: boolean }, DecisionPage>('routing/read-decisions'),
  clearSessions: transition<{ cursor: string }, { cleared: number; cursor: string }>('sessions/clear'),
};
const TEXTS = new Set<string>(['policy', 'groupPlacement']);

/** Settings of pools, recent decisions and all sessions at once: one method, one script. */
@Injectable()
export class PoolStore {
  constructor(private readonly runner: FunctionRunner) {}

  /** Changes settings; a repeat changes nothing. Another policy takes over with `finish`. */
  async configure(pool: string, set: PoolSettings, reset: readonly string[] = []): Promise<StoredSettings> {
    const texts: Record<string, string> = {};
    for (const name of POOL_SETTING_NAMES) if (set[name] != null) texts[name] = String(set[name]);
    return settingsOf(await this.runner.run(SCRIPTS.configure, pool, { set: texts, reset }));
  }

  /** After a pass over all servers that began when the settings had this version. */
  async finish(pool: string, version: number): Promise<StoredSettings> {
    return settingsOf(await this.runner.run(SCRIPTS.finish, pool, { version }));
  }

  async settings(pool: string): Promise<StoredSettings> {
    return settingsOf(await this.runner.run(SCRIPTS.settings, pool, {}));
  }

  /** @param page `before`: only those of earlier leases; `limit` at most 128 */
  decisions(pool: string, page: { before?: number; limit: number; full: boolean }): Promise<DecisionPage> {
    return this.runner.run(SCRIPTS.decisions, pool, page);
  }

  /** One page; begin with cursor `0`, which also ends it. */
  clearSessions(pool: string, cursor: string): Promise<{ cleared: number; cursor: string }> {
    return this.runner.run(SCRIPTS.clearSessions, pool, { cursor });
  }
}

function settingsOf({ settings, ...rest }: RawSettings): StoredSettings {
  const named = POOL_SETTING_NAMES.filter((name) => settings[name] !== undefined).map((name) => [
    name,
    TEXTS.has(name) || settings[name] === 'never' ? settings[name] : Number(settings[name]),
  ]);
  return { ...rest, settings: Object.fromEntries(named) as PoolSettings };
}
