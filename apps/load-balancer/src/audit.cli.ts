import Table from 'cli-table3';
import { Command, CommanderError, Option } from 'commander';
import { isBroomwagonError, POOL_PATTERN, wireMessage } from '@broomwagon/contracts';
import { ConnectionsConfig, loadConfig, withoutCredentials } from '@broomwagon/platform';
import {
  checkRedisAccess,
  connectRedis,
  openPayloadStore,
  PAYLOAD_DRIVERS,
  PoolAudit,
  PoolDirectory,
  FunctionRunner,
  type AuditReport,
  type Finding,
  type PayloadDriver,
  type PayloadStore,
} from '@broomwagon/state';

/** Rows of one table; the rest is only counted. */
const MOST_ROWS = 200;
/** Pools that the error for an unknown pool lists. */
const MOST_POOLS = 10;

interface AuditOptions {
  pool: string;
  repair: boolean;
  json: boolean;
  redis: string;
  prefix: string;
  payloads: boolean;
  payloadDriver: PayloadDriver;
  payloadUrl?: string;
  payloadDir: string;
}

/**
 * `npm run audit -- --pool P [--repair] [--json]`: checks the counts of a pool of a live system and lists the wrong
 * ones. Exit code 0: the counts balance, 1: some are wrong, 2: the audit could not be made.
 */
async function main(argv: string[]): Promise<number> {
  const command = new Command('audit')
    .description(
      'Checks the counts of a pool: leases, servers, indexes, sessions, waiters, and the requests, groups, rounds, ' +
        'payloads and snapshots of each job.',
    )
    .requiredOption('--pool <pool>', 'the pool')
    .option('--repair', 'correct indexes and counters from the leases and requests', false)
    .option('--json', 'print the result as JSON', false)
    .option('--redis <url>', 'Redis address', process.env.REDIS_URL ?? 'redis://127.0.0.1:6379')
    .option('--prefix <prefix>', 'prefix of all keys', process.env.REDIS_KEY_PREFIX ?? 'rollout')
    .addOption(
      new Option('--payload-driver <driver>', 'where payloads are stored')
        .choices(PAYLOAD_DRIVERS)
        .default(process.env.PAYLOAD_DRIVER ?? 'redis'),
    )
    .option('--payload-url <url>', 'Redis of the payloads; default: the Redis of the pool', process.env.PAYLOAD_URL)
    .option('--payload-dir <folder>', 'folder of the payloads', process.env.PAYLOAD_DIR ?? './payloads')
    .option('--no-payloads', 'do not check that the payloads are stored')
    .exitOverride();
  try {
    command.parse(argv, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    throw error;
  }
  const options = command.opts<AuditOptions>();
  if (!POOL_PATTERN.test(options.pool)) {
    console.error(`audit: the pool must match ${POOL_PATTERN.source}`);
    return 2;
  }
  let redis: ReturnType<typeof connectRedis> | undefined;
  let payloads: PayloadStore | undefined;
  try {
    const environment = { ...process.env, REDIS_URL: options.redis };
    const connection = loadConfig(ConnectionsConfig, { env: environment }).redisConfig();
    redis = connectRedis(connection);
    await checkRedisAccess(redis, options.prefix);
    payloads = options.payloads ? await openPayloadStore({ ...connection, ...payloadOptionsOf(options) }) : undefined;
    const audit = new PoolAudit(redis, new FunctionRunner(redis, options.prefix), payloads);
    const report = withWireIds(await audit.run(options.pool, { repair: options.repair }));
    const pools = await new PoolDirectory(redis, options.prefix).list();
    // The counts of a pool that does not exist balance.
    if (!pools.includes(options.pool) && Object.values(report.counts).every((count) => count === 0)) {
      const known =
        pools.length > 0
          ? `there are ${pools.slice(0, MOST_POOLS).join(', ')}${pools.length > MOST_POOLS ? ', ...' : ''}`
          : 'there are no pools; check --prefix';
      console.error(`audit: there is no pool ${options.pool} in this Redis; ${known}`);
      return 2;
    }
    console.log(options.json ? JSON.stringify(report, undefined, 2) : inWords(report));
    return report.balanced ? 0 : 1;
  } catch (error) {
    const away = isBroomwagonError(error, 'UNAVAILABLE')
      ? `; check that Redis runs at ${withoutCredentials(options.redis)}`
      : '';
    console.error(`audit: ${error instanceof Error ? error.message : String(error)}${away}`);
    return 2;
  } finally {
    redis?.disconnect();
    await payloads?.close();
  }
}

function payloadOptionsOf({ payloadDriver, payloadUrl, redis, payloadDir, prefix }: AuditOptions) {
  return { driver: payloadDriver, url: payloadUrl ?? redis, dir: payloadDir, keyPrefix: prefix };
}

/** With ids as the callers chose them, so that they can be given to other commands. */
function withWireIds(report: AuditReport): AuditReport {
  const plain = (finding: Finding) => ({
    ...finding,
    where: wireMessage(finding.where),
    detail: wireMessage(finding.detail),
  });
  const { findings, repaired, unproven } = report;
  return {
    ...report,
    findings: findings.map(plain),
    repaired: repaired.map(plain),
    unproven: unproven.map(wireMessage),
  };
}

function inWords({ pool, balanced, findings, repaired, counts, unproven }: AuditReport): string {
  const { servers, leases, sessions, workers, jobs, requests } = counts;
  return [
    `pool ${pool}: ${leases} leases (${counts.serverLoads} on ${servers} servers, ${counts.workerLoads} with ` +
      `${workers} workers), ${sessions} sessions, ${requests} requests of ${jobs} jobs, ${counts.payloads} payloads`,
    ...(repaired.length > 0 ? [`repaired ${repaired.length}:`, tableOf(repaired)] : []),
    ...(findings.length > 0 ? [`wrong ${findings.length}:`, tableOf(findings)] : []),
    ...unproven.map((what) => `not checked, since it changed all the time: ${what}; run the audit again`),
    balanced ? 'ok: the counts balance' : 'NOT ok: the counts are wrong',
  ].join('\n');
}

function tableOf(findings: Finding[]): string {
  const table = new Table({ head: ['check', 'where', 'finding'], style: { head: [], border: [] } });
  for (const { check, where, detail } of findings.slice(0, MOST_ROWS)) table.push([check, where, detail]);
  const rest = findings.length - MOST_ROWS;
  return rest > 0 ? `${table.toString()}\n... and ${rest} more (--json has all)` : table.toString();
}

void main(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
});
