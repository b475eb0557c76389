import { attemptNumber } from '@broomwagon/testing';
import type { RedisClient } from '../redis-cluster';
import { isOver } from '../../../../lab/models/src/rounds/round-follower.fixture';

/** State of a job and of one round, for comparison in a test. */
export interface JobView {
  requestCounts: Record<string, number>;
  counts: { trained: number; excluded: number; failed: number; dropped: number; settling: number };
  longtail: string[];
  /** Tokens of all its rounds, by reason. */
  wasted: Record<string, number>;
  groups: {
    groupId: string;
    state: string;
    live: number;
    finished: number;
    tokens: number;
    longest: number;
    cuts: number;
    pinned: boolean;
    held: boolean;
    oldestVersion: number | null;
    requests: (string | number)[][];
  }[];
  round?: {
    state: string;
    accepted: string[];
    held: string[];
    numbers: Record<string, number>;
    places?: Record<string, number>;
    spare?: number;
  };
}

const STATES = 'submitted pending claimed running cutting unfinished finished trained failed dropped'.split(' ');
const NUMBERS =
  `neededGroups newGroups replacedGroups excludedGroups takenGroups submittedGroups liveGroups acceptedGroups
  failedGroups droppedGroups reservedGroups requestsDone requestsCut groupsRequeued inFlight settled`.split(/\s+/);

/** Reads a job from the keys themselves, without scripts. */
export async function readJob(redis: RedisClient, root: string, roundId: string | undefined): Promise<JobView> {
  const [requestCounts, job, longtail, names] = await Promise.all([
    redis.hgetall(`${root}:job-counts:job`),
    redis.hgetall(`${root}:job:job`),
    redis.zrange(`${root}:job-longtail:job`, '0', '-1'),
    redis.keys(`${root}:group:*`),
  ]);
  const number = (value: string | undefined): number => Number(value ?? 0);
  return {
    requestCounts: Object.fromEntries(STATES.map((state) => [state, number(requestCounts[state])])),
    counts: {
      trained: number(job['trainedGroups']),
      excluded: number(job['excludedGroups']),
      failed: number(job['failedGroups']),
      dropped: number(job['droppedGroups']),
      settling: number(job['settlingGroups']),
    },
    longtail,
    wasted: await readWaste(redis, root),
    groups: await Promise.all(names.toSorted().map((name) => readGroup(redis, root, name))),
    ...(roundId === undefined ? {} : { round: await readRound(redis, root, roundId) }),
  };
}

/** Wasted tokens by reason. A folded round has passed its counters on to the job, so its ledger is skipped. */
async function readWaste(redis: RedisClient, root: string): Promise<Record<string, number>> {
  const ledgers = [`${root}:job-ledger:job`];
  for (const name of await redis.keys(`${root}:round-ledger:*`)) {
    const round = name.replace(':round-ledger:', ':round:');
    if ((await redis.hexists(round, 'ledgerFolded')) === 0) ledgers.push(name);
  }
  const wasted: Record<string, number> = {};
  for (const ledger of ledgers) {
    for (const [name, tokens] of Object.entries(await redis.hgetall(ledger))) {
      if (!name.startsWith('waste.')) continue;
      const reason = name.slice('waste.'.length);
      wasted[reason] = (wasted[reason] ?? 0) + Number(tokens);
    }
  }
  return wasted;
}

async function readGroup(redis: RedisClient, root: string, name: string): Promise<JobView['groups'][number]> {
  const group = await redis.hgetall(name);
  const groupId = name.slice(name.lastIndexOf('/') + 1);
  const ids = Array.from(
    { length: Number(group['launched']) },
    (_, index) => `${root}:request:job/${groupId}/${index}`,
  );
  const fields = ['state', 'attempt', 'failures', 'returns', 'tokens'] as const;
  const requests = await Promise.all(ids.map((id) => redis.hmget(id, ...fields)));
  return {
    groupId,
    state: group['state']!,
    live: Number(group['live']),
    finished: Number(group['finished']),
    tokens: Number(group['tokens'] ?? 0),
    longest: Number(group['longest'] ?? 0),
    cuts: Number(group['cuts'] ?? 0),
    pinned: group['pinned'] === '1',
    held: group['held'] === '1',
    oldestVersion: group['oldestVersion'] === undefined ? null : Number(group['oldestVersion']),
    requests: requests.map(([state, ...numbers]) => [state!, ...numbers.map((value) => attemptNumber(value ?? '0'))]),
  };
}

async function readRound(redis: RedisClient, root: string, roundId: string): Promise<NonNullable<JobView['round']>> {
  const [round, accepted, held, places] = await Promise.all([
    redis.hgetall(`${root}:round:job/${roundId}`),
    redis.lrange(`${root}:round-accepted:job/${roundId}`, '0', '-1'),
    redis.zrange(`${root}:round-held:job/${roundId}`, '0', '-1'),
    redis.hgetall(`${root}:round-places:job/${roundId}`),
  ]);
  const counts = Object.entries(places).map(([name, count]) => [name, Number(count)] as const);
  return {
    state: round['state']!,
    accepted,
    held,
    numbers: Object.fromEntries(NUMBERS.map((name) => [name, Number(round[name] ?? 0)])),
    ...(isOver({ state: round['state']! })
      ? {}
      : {
          places: Object.fromEntries(counts.filter(([name, count]) => !/^(live:|\*)/.test(name) && count > 0)),
          spare: Number(places['*spare'] ?? 0),
        }),
  };
}
