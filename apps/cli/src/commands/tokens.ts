import { randomBytes } from 'node:crypto';
import { readData, type Schemas } from '@broomwagon/admin-client';
import { type Command, Option } from 'commander';
import { count, duration } from '../arguments';
import { CommandFailure } from '../failures';
import type { Act, Session } from '../session';
import { formatFields, formatTable, formatTime } from '../tables';

/** Operations on tokens, by REST or by the store in Redis. */
interface Tokens {
  create(request: NewToken): Promise<Schemas['CreateTokenReply']>;
  list(): Promise<Schemas['TokenStatus'][]>;
  revoke(tokenId: string): Promise<boolean>;
}
type NewToken = Pick<Schemas['CreateTokenReply'], 'name' | 'role' | 'pools' | 'maxGenerations' | 'maxPerMinute'> & {
  expiresInMs?: number;
};
interface Place {
  redis?: true;
}
interface CreateOptions extends Place, Omit<NewToken, 'pools' | 'expiresInMs'> {
  pools?: string;
  expires?: number;
}

export function addTokens(program: Command, act: Act): void {
  const tokens = program.command('tokens').description('tokens of the REST API and keys of the gateway');
  const command = (name: string, about: string, options?: { isDefault: true }) =>
    tokens
      .command(name, options)
      .description(about)
      .option('--redis', 'in the Redis of REDIS_URL, below REDIS_KEY_PREFIX, without admin-api: for the first token');
  command('list', 'lists tokens, without their secrets', { isDefault: true }).action(
    act((session, place: Place) =>
      withTokens(session, place, async (store) => {
        const found = await store.list();
        await session.show({ tokens: found }, () => formatTable(found.map(tokenRow)));
      }),
    ),
  );
  command('create', 'makes a token and prints it; it is shown only once')
    .requiredOption('--name <name>', 'who uses it')
    .addOption(
      new Option('--role <role>', 'what it allows')
        .choices(['client', 'trainer', 'viewer', 'operator', 'admin'] satisfies Schemas['Role'][])
        .makeOptionMandatory(),
    )
    .option('--pools <pools>', 'names of pools, separated by commas (default: all)')
    .option('--expires <duration>', 'time until it expires (default: never)', duration)
    .option('--max-generations <count>', 'generations at the same time, in each replica of the gateway', count)
    .option('--max-per-minute <count>', 'requests in a minute, to each replica of the gateway', count)
    .action(
      act((session, { redis, pools, expires: expiresInMs, ...given }: CreateOptions) =>
        withTokens(session, { redis }, async (store) => {
          const made = await store.create({ ...given, pools: pools?.split(','), expiresInMs });
          await session.show(made, ({ token }) => token);
        }),
      ),
    );
  command('revoke <tokenId>', 'deletes a token; it is refused within 5 s').action(
    act((session, tokenId: string, place: Place) =>
      withTokens(session, place, async (store) => {
        await session.confirm(`Revoke token ${tokenId}?`);
        const revoked = await store.revoke(tokenId);
        if (!revoked) throw new CommandFailure(`there is no token ${tokenId}`);
        await session.show({ tokenId, revoked }, () => `${tokenId}: revoked`);
      }),
    ),
  );
  tokens
    .command('hash')
    .description('makes a token that is not stored, and its SHA-256 for ADMIN_TOKEN_SHA256')
    .action(
      act(async (session) => {
        const { hashOfToken } = await import('@broomwagon/state');
        const token = randomBytes(32).toString('base64url');
        await session.show({ token, ADMIN_TOKEN_SHA256: hashOfToken(token) }, formatFields);
      }),
    );
}

function withTokens(session: Session, { redis }: Place, work: (tokens: Tokens) => Promise<void>): Promise<void> {
  return redis ? withStore(work) : work(buildTokenCalls(session));
}

function buildTokenCalls({ client }: Session): Tokens {
  return {
    create: (body) => readData(client.POST('/api/v1/tokens', { body })),
    list: async () => (await readData(client.GET('/api/v1/tokens'))).tokens,
    async revoke(tokenId) {
      const params = { path: { tokenId } };
      return (await readData(client.DELETE('/api/v1/tokens/{tokenId}', { params }))).revoked;
    },
  };
}

/** Runs work on the store in Redis. The store is loaded here, because other commands need no Redis. */
async function withStore(work: (tokens: Tokens) => Promise<void>): Promise<void> {
  await import('reflect-metadata');
  const { CreateTokenRequest } = await import('@broomwagon/contracts');
  const { validate } = await import('@broomwagon/messaging');
  const { ConnectionsConfig, loadConfig } = await import('@broomwagon/platform');
  const { connectRedis, CredentialStore } = await import('@broomwagon/state');
  const alsoKnown = ['BROOMWAGON_URL', 'BROOMWAGON_TOKEN', 'BROOMWAGON_POOL'];
  const config = loadConfig(ConnectionsConfig, { alsoKnown }).redisConfig();
  const redis = connectRedis(config);
  try {
    const store = new CredentialStore(redis, config.keyPrefix);
    await work({
      create: (request) => store.create(validate(CreateTokenRequest, request)),
      list: () => store.list(),
      revoke: (tokenId) => store.revoke(tokenId),
    });
  } finally {
    redis.disconnect();
  }
}

function tokenRow({ tokenId, name, role, pools, createdAtMs, expiresAtMs, ...limits }: Schemas['TokenStatus']) {
  return {
    id: tokenId,
    name,
    role,
    pools: pools?.join(', ') ?? 'all',
    created: formatTime(createdAtMs),
    expires: expiresAtMs === undefined ? 'never' : formatTime(expiresAtMs),
    'max generations': limits.maxGenerations ?? 'none',
    'max per minute': limits.maxPerMinute ?? 'none',
  };
}
