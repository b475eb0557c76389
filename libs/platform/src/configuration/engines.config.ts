import { IsString, Matches, ValidateBy } from 'class-validator';
import { Env } from './env.decorator';
import type { ServiceConfig } from './service.config';

// TypeScript requires the rest parameter of a class that mixins extend.
// oxlint-disable-next-line typescript/no-explicit-any
type ConfigClass = new (...args: any[]) => ServiceConfig;

/** Extends a configuration class with the settings of a service that calls engines. */
export function withEngines<Base extends ConfigClass>(base: Base) {
  class EnginesConfig extends base {
    @Env('ENGINE_API_KEY', 'bearer token for the engines of all pools', { isSecret: true })
    engineApiKey?: string;

    @Env('ENGINE_API_KEYS', 'bearer tokens by pool, as actor=KEY,reward=KEY; they override ENGINE_API_KEY', {
      isSecret: true,
    })
    @Matches(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}=.+$/, { each: true, message: 'must be pool=KEY, separated by commas' })
    engineApiKeys: string[] = [];

    @Env(
      'ENGINE_ALLOW_LIST',
      'allowed hosts of engines: names, patterns as *.engines.svc, addresses, CIDR; required with a key',
    )
    @IsString({ each: true })
    @IsGivenWithKey()
    engineAllowList: string[] = [];

    /** Returns the bearer token for engines of a pool. */
    findEngineKey(pool: string): string | undefined {
      const own = this.engineApiKeys.find((entry) => entry.startsWith(`${pool}=`));
      return own?.slice(pool.length + 1) ?? this.engineApiKey;
    }
  }
  return EnginesConfig;
}

/** A list that is required with a key, because keys are sent to every registered address on the list. */
function IsGivenWithKey(): PropertyDecorator {
  return ValidateBy({
    name: 'isGivenWithKey',
    validator: {
      validate: (list, args) => {
        const { engineApiKey, engineApiKeys } = args!.object as { engineApiKey?: string; engineApiKeys: string[] };
        const hasKey = engineApiKey !== undefined || engineApiKeys.length > 0;
        return !hasKey || (Array.isArray(list) && list.length > 0);
      },
      defaultMessage: () =>
        'must name the hosts that may get ENGINE_API_KEY or ENGINE_API_KEYS, as 127.0.0.1,10.0.0.0/8,*.engines.svc',
    },
  });
}
