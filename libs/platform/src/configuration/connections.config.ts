import { readFileSync } from 'node:fs';
import { parseNatMap, parseRedisAddress, REDIS_ADDRESS_FORMS, type TlsSettings } from '@broomwagon/contracts';
import { RereadFile } from '@broomwagon/messaging';
import { applyDecorators } from '@nestjs/common';
import { IsIn, Matches, ValidateBy } from 'class-validator';
import { Env } from './env.decorator';

/** Settings of services and command lines for the connections to NATS and Redis. */
export class ConnectionsConfig {
  @Env('NATS_URL', 'NATS addresses, separated by commas; tls:// requires TLS')
  @Matches(/^(nats|tls):\/\/\S+$/, { message: 'must be an address as nats://host:4222 or tls://host:4222' })
  natsUrl: string = 'nats://127.0.0.1:4222';

  @Env('NATS_USER', 'NATS user')
  natsUser?: string;

  @Env('NATS_PASSWORD', 'NATS password', { isSecret: true })
  natsPassword?: string;

  @Env('NATS_TOKEN', 'NATS token', { isSecret: true })
  natsToken?: string;

  @Env('NATS_NKEY_SEED', 'seed of a NATS NKey', { isSecret: true })
  natsNkeySeed?: string;

  @Env('NATS_CREDS', 'path of a NATS credentials file')
  natsCredsFile?: string;

  @Env('NATS_TLS_CA', 'file with the CA of NATS, for tls://; default: the CAs of Node')
  @IsFileOfTls('natsUrl', 'tls://')
  natsTlsCa?: string;

  @Env('NATS_TLS_CERT', 'file with the client certificate for NATS')
  @IsFileOfTls('natsUrl', 'tls://')
  natsTlsCert?: string;

  @Env('NATS_TLS_KEY', 'file with the key of NATS_TLS_CERT')
  @IsFileOfTls('natsUrl', 'tls://')
  natsTlsKey?: string;

  @Env('NATS_TLS_SERVER_NAME', 'name in the certificate of NATS; default: the host of NATS_URL')
  @IsOfTls('natsUrl', 'tls://')
  natsTlsServerName?: string;

  @Env('NATS_INBOX_PREFIX', 'prefix of the inboxes of this service; other services need it in REPLY_PREFIXES')
  @Matches(/^[\w-]+(\.[\w-]+)*$/, { message: 'must be a subject prefix, as _INBOX' })
  natsInboxPrefix: string = '_INBOX';

  @Env(
    'NATS_IGNORE_CLUSTER_UPDATES',
    'dial only the addresses of NATS_URL, not those that a NATS cluster announces: for a cluster behind NAT or a proxy',
  )
  natsIgnoreClusterUpdates: boolean = false;

  @Env('NATS_STREAM_REPLICAS', 'copies of each stream in a NATS cluster: 1, 3 or 5')
  @IsIn([1, 3, 5])
  natsStreamReplicas: number = 1;

  @Env('REDIS_URL', `Redis or Valkey address: ${REDIS_ADDRESS_FORMS}; rediss requires TLS`)
  @IsRedisAddress()
  redisUrl: string = 'redis://127.0.0.1:6379';

  @Env('REDIS_SENTINEL_USER', 'user of the Sentinels; REDIS_URL has the user of the primary')
  redisSentinelUser?: string;

  @Env('REDIS_SENTINEL_PASSWORD', 'password of the Sentinels', { isSecret: true })
  redisSentinelPassword?: string;

  @Env(
    'REDIS_NAT_MAP',
    'addresses of Cluster nodes, or of servers that Sentinels announce, as announced=reachable, each host:port, ' +
      'separated by commas',
  )
  @IsNatMap()
  redisNatMap?: string;

  @Env('REDIS_TLS_CA', 'file with the CA of Redis, for rediss; default: the CAs of Node')
  @IsFileOfTls('redisUrl', 'rediss://')
  redisTlsCa?: string;

  @Env('REDIS_TLS_CERT', 'file with the client certificate for Redis')
  @IsFileOfTls('redisUrl', 'rediss://')
  redisTlsCert?: string;

  @Env('REDIS_TLS_KEY', 'file with the key of REDIS_TLS_CERT')
  @IsFileOfTls('redisUrl', 'rediss://')
  redisTlsKey?: string;

  @Env('REDIS_TLS_SERVER_NAME', 'name in the certificate of Redis; default: the host of REDIS_URL')
  @IsOfTls('redisUrl', 'rediss://')
  redisTlsServerName?: string;

  @Env('REDIS_KEY_PREFIX', 'prefix of all keys in Redis')
  @Matches(/^[A-Za-z0-9_-]{1,32}$/, { message: 'must be 1 to 32 letters, digits, _ or -' })
  redisKeyPrefix: string = 'rollout';

  /** Options for `connectNats`. */
  natsConfig() {
    return {
      url: this.natsUrl,
      user: this.natsUser,
      password: this.natsPassword,
      token: this.natsToken,
      nkeySeed: this.natsNkeySeed,
      credsFile: this.natsCredsFile,
      inboxPrefix: this.natsInboxPrefix,
      ignoreClusterUpdates: this.natsIgnoreClusterUpdates,
      tls: buildTls(this.natsTlsCa, this.natsTlsCert, this.natsTlsKey, this.natsTlsServerName),
    };
  }

  /** Options for the connection to Redis. `tls` counts only for an address that requires TLS. */
  redisConfig() {
    return {
      url: this.redisUrl,
      tls: buildTls(this.redisTlsCa, this.redisTlsCert, this.redisTlsKey, this.redisTlsServerName),
      sentinelUsername: this.redisSentinelUser,
      sentinelPassword: this.redisSentinelPassword,
      natMap: this.redisNatMap === undefined ? undefined : parseNatMap(this.redisNatMap),
      keyPrefix: this.redisKeyPrefix,
    };
  }
}

/** Builds options of TLS. Each property is read from its file for each connection, because certificates are renewed. */
function buildTls(ca?: string, cert?: string, key?: string, servername?: string): TlsSettings {
  const settings: TlsSettings = {};
  for (const [name, path] of Object.entries({ ca, cert, key })) {
    if (path === undefined) continue;
    const file = new RereadFile(path);
    Object.defineProperty(settings, name, { enumerable: true, get: () => file.read() });
  }
  // node:tls does not treat an undefined `servername` as absent.
  return servername === undefined ? settings : Object.assign(settings, { servername });
}

export function IsRedisAddress(): PropertyDecorator {
  return ValidateBy({
    name: 'isRedisAddress',
    validator: {
      validate: (url) => parseRedisAddress(String(url)) !== undefined,
      defaultMessage: () => `must be an address as ${REDIS_ADDRESS_FORMS}`,
    },
  });
}

function IsNatMap(): PropertyDecorator {
  return ValidateBy({
    name: 'isNatMap',
    validator: {
      validate: (text) => parseNatMap(String(text)) !== undefined,
      defaultMessage: () => 'must be pairs as 10.0.0.1:6379=localhost:7001, separated by commas',
    },
  });
}

/** A setting of TLS, which is refused if the address does not require TLS, because it would be ignored. */
function IsOfTls(urlProperty: 'natsUrl' | 'redisUrl', scheme: string): PropertyDecorator {
  const asksForTls = urlProperty === 'redisUrl' ? /^rediss[+:]/ : /tls:\/\//;
  return ValidateBy({
    name: 'isOfTls',
    validator: {
      validate: (_, args) => asksForTls.test(String((args!.object as ConnectionsConfig)[urlProperty])),
      defaultMessage: () => `needs an address that begins with ${scheme}`,
    },
  });
}

/** The path of a readable file for TLS, which is refused if the address does not require TLS. */
function IsFileOfTls(urlProperty: 'natsUrl' | 'redisUrl', scheme: string): PropertyDecorator {
  return applyDecorators(IsOfTls(urlProperty, scheme), IsReadableFile());
}

/** The path of a file that is not empty and can be read. */
export function IsReadableFile(): PropertyDecorator {
  return ValidateBy({
    name: 'isReadableFile',
    validator: {
      validate: (path) => {
        try {
          return readFileSync(path as string).length > 0;
        } catch {
          return false;
        }
      },
      defaultMessage: () => 'must be the path of a readable file',
    },
  });
}
