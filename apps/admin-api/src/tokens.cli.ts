import 'reflect-metadata';
import { randomBytes } from 'node:crypto';
import Table from 'cli-table3';
import { Command, Option } from 'commander';
import { CreateTokenRequest, ROLES, type TokenStatus } from '@broomwagon/contracts';
import { validate } from '@broomwagon/messaging';
import { ConnectionsConfig, loadConfig } from '@broomwagon/platform';
import { connectRedis, CredentialStore, hashOfToken } from '@broomwagon/state';

const MS_PER_DAY = 86_400_000;

/** `npm run tokens -- create|list|revoke|hash`: the bearer tokens of admin-api, for those who can reach its Redis. */
async function main(argv: string[]): Promise<void> {
  const command = new Command('tokens').description(
    'Makes, lists and revokes bearer tokens in the Redis of REDIS_URL, below REDIS_KEY_PREFIX.',
  );
  command
    .command('create')
    .description('makes a token and prints it; it is shown only once')
    .requiredOption('--name <name>', 'who uses it')
    .addOption(new Option('--role <role>', 'what it allows').choices(ROLES).makeOptionMandatory())
    .option('--pools <pools>', 'names of pools, separated by commas; default: all')
    .option('--days <days>', 'days until it expires; default: never', Number)
    .action(({ name, role, pools, days }: { name: string; role: string; pools?: string; days?: number }) =>
      withStore(async (store) => {
        const expiresInMs = days === undefined ? undefined : days * MS_PER_DAY;
        const request = { name, role, pools: pools?.split(','), expiresInMs };
        const { token } = await store.create(validate(CreateTokenRequest, request));
        console.log(token);
      }),
    );
  command
    .command('list')
    .description('lists all tokens, without their secrets')
    .action(() => withStore(async (store) => console.log(tableOf(await store.list()))));
  command
    .command('revoke <tokenId>')
    .description('deletes a token')
    .action((tokenId: string) =>
      withStore(async (store) => {
        if (!(await store.revoke(tokenId))) throw new Error(`there is no token ${tokenId}`);
        console.log(`revoked ${tokenId}`);
      }),
    );
  command
    .command('hash')
    .description('makes a token that is not stored, and its SHA-256 for ADMIN_TOKEN_SHA256')
    .action(() => {
      const token = randomBytes(32).toString('base64url');
      console.log(`token:              ${token}\nADMIN_TOKEN_SHA256: ${hashOfToken(token)}`);
    });
  await command.parseAsync(argv, { from: 'user' });
}

async function withStore(work: (store: CredentialStore) => Promise<void>): Promise<void> {
  const config = loadConfig(ConnectionsConfig).redisConfig();
  const redis = connectRedis(config);
  try {
    await work(new CredentialStore(redis, config.keyPrefix));
  } finally {
    redis.disconnect();
  }
}

function tableOf(tokens: readonly TokenStatus[]): string {
  const table = new Table({ head: ['id', 'name', 'role', 'pools', 'created', 'expires'], style: { head: [] } });
  const time = (ms?: number) => (ms === undefined ? 'never' : new Date(ms).toISOString());
  for (const { tokenId, name, role, pools, createdAtMs, expiresAtMs } of tokens) {
    table.push([tokenId, name, role, pools?.join(', ') ?? 'all', time(createdAtMs), time(expiresAtMs)]);
  }
  return table.toString();
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(`tokens: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
});
