import Table from 'cli-table3';
import { Command, CommanderError } from 'commander';
import { isBroomwagonError, POOL_PATTERN, wireRecord } from '@broomwagon/contracts';
import { loadConfig, PayloadServiceConfig, withoutCredentials } from '@broomwagon/platform';
import {
  checkRedisAccess,
  connectRedis,
  openPayloadStore,
  PoolAudit,
  PoolDirectory,
  FunctionRunner,
  type AuditReport,
  type Finding,
  type PayloadStore,
} from '@broomwagon/state';

/** Maximum rows of one table; further rows are only counted. */
const MAX_ROWS = 200;
/** Maximum pools that the error for an unknown pool lists. */
const MAX_POOLS = 10;

/**
 * `npm run audit -- --pool P [--repair] [--json]`: checks the counts of a pool of a live system and lists wrong counts.
 * Exit code 0: all counts are right, 1: some counts are wrong, 2: the audit could not be made.
 */
async function main(argv: string[]): Promise<number> {
  const command = new Command('audit')
    .description(
      'Checks the counts of a pool: leases, servers, indexes, sessions, waiters, and the requests, groups, rounds, ' +
        'payloads and snapshots of each job. The variables REDIS_* and PAYLOAD_* are those of the services.',
    )
    .requiredOption('--pool <pool>', 'the pool')
    .option('--repair', 'correct indexes and counters from the leases and requests', false)
    .option('--json', 'print the result as JSON', false)
    .option('--no-payloads', 'do not check that the payloads are stored')
    .exitOverride();
  let config: PayloadServiceConfig;
  let payloads: PayloadStore | undefined;
  try {
    command.parse(argv, { from: 'user' });
    config = loadConfig(PayloadServiceConfig);
  } catch (error) {
    if (!(error instanceof CommanderError)) console.error(`audit: ${(error as Error).message}`);
    return error instanceof CommanderError && error.exitCode === 0 ? 0 : 2;
  }
  const options = command.opts<{ pool: string; repair: boolean; json: boolean; payloads: boolean }>();
  const { keyPrefix, ...connection } = config.redisConfig();
  const redis = connectRedis(connection);
  try {
    if (!POOL_PATTERN.test(options.pool)) throw new Error(`the pool must match ${POOL_PATTERN.source}`);
    await checkRedisAccess(redis, keyPrefix);
    payloads = options.payloads ? await openPayloadStore(config.payloadStoreOptions()) : undefined;
    const audit = new PoolAudit(redis, new FunctionRunner(redis, keyPrefix), payloads);
    const made = await audit.run(options.pool, { repair: options.repair });
    // Ids are shown as the callers chose them, so that they can be given to other commands.
    const report = wireRecord({ ...made }) as unknown as AuditReport;
    const pools = await new PoolDirectory(redis, keyPrefix).list();
    // A missing pool has no wrong count, so it is recognized here.
    if (!pools.includes(options.pool) && Object.values(report.counts).every((count) => count === 0)) {
      const some = `there are ${pools.slice(0, MAX_POOLS).join(', ')}${pools.length > MAX_POOLS ? ', ...' : ''}`;
      const known = pools.length > 0 ? some : 'there are no pools; check REDIS_KEY_PREFIX';
      throw new Error(`there is no pool ${options.pool} in this Redis; ${known}`);
    }
    console.log(options.json ? JSON.stringify(report, undefined, 2) : inWords(report));
    return report.balanced ? 0 : 1;
  } catch (error) {
    const isUnavailable = isBroomwagonError(error, 'UNAVAILABLE');
    const advice = isUnavailable ? `; check that Redis runs at ${withoutCredentials(config.redisUrl)}` : '';
    console.error(`audit: ${error instanceof Error ? error.message : String(error)}${advice}`);
    return 2;
  } finally {
    redis.disconnect();
    await payloads?.close();
  }
}

function inWords({ pool, balanced, findings, repaired, counts, unproven }: AuditReport): string {
  const { servers, leases, sessions, workers, jobs, requests } = counts;
  return [
    `pool ${pool}: ${leases} leases (${counts.serverLoads} on ${servers} servers, ${counts.workerLoads} with ` +
      `${workers} workers), ${sessions} sessions, ${requests} requests of ${jobs} jobs, ${counts.payloads} payloads`,
    ...(repaired.length > 0 ? [`repaired ${repaired.length}:`, formatTable(repaired)] : []),
    ...(findings.length > 0 ? [`wrong ${findings.length}:`, formatTable(findings)] : []),
    ...unproven.map((what) => `not checked, since it changed all the time: ${what}; run the audit again`),
    balanced ? 'ok: the counts balance' : 'NOT ok: the counts are wrong',
  ].join('\n');
}

function formatTable(findings: Finding[]): string {
  const table = new Table({ head: ['check', 'where', 'finding'], style: { head: [], border: [] } });
  for (const { check, where, detail } of findings.slice(0, MAX_ROWS)) table.push([check, where, detail]);
  const rest = findings.length - MAX_ROWS;
  return rest > 0 ? `${table.toString()}\n... and ${rest} more (--json has all)` : table.toString();
}

void main(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
});
