import { Injectable } from '@nestjs/common';
import {
  isBroomwagonError,
  type JobId,
  type OpenRound,
  type OperationName,
  type OverviewPart,
  type OverviewReply,
  type PoolName,
  type ReplyOf,
  type RequestOf,
  type RoundSummary,
  type ServerStatus,
  type UnreadPart,
} from '@broomwagon/contracts';
import { TypedClient } from '@broomwagon/messaging';
import { RedisMemory } from '@broomwagon/state';
import { Readiness } from './readiness';
import { findAlarms, type PoolNumbers } from './overview-alarms';
import { SharedReads } from './shared-reads';

/** Maximum duration of a call, milliseconds: a part that is down must not hide the others for long. */
export const CALL_MS = 3_000;
/** Time in which requests share one reply, milliseconds. */
const SHARED_MS = 1_000;
const MAX_JOBS = 16;

type Parts = Omit<OverviewReply, 'pool' | 'atMs' | 'alarms' | 'unread'>;
/** Answers about a pool, read together. */
export interface PoolReading {
  /** The overview without its alarms. */
  numbers: PoolNumbers;
  /** All servers; absent if the load-balancer has not answered. */
  servers?: readonly ServerStatus[];
}

/** Reads the overview of a pool for a person on call, each part by itself: a failed part hides no other part. */
@Injectable()
export class Overview {
  private readonly shared = new SharedReads<PoolReading>(SHARED_MS);

  constructor(
    private readonly client: TypedClient,
    private readonly readiness: Readiness,
    private readonly memory: RedisMemory,
  ) {}

  /** Reads the overview. A part that does not answer is no error: `unread` of the reply names the part. */
  async read(pool: PoolName): Promise<OverviewReply> {
    const { numbers, servers } = await this.readPool(pool);
    return { ...numbers, alarms: findAlarms(numbers, servers) };
  }

  /** Reads the pool. A part that does not answer is no error: `numbers.unread` names the part. */
  readPool(pool: PoolName): Promise<PoolReading> {
    return this.shared.get(pool, () => this.readParts(pool));
  }

  private async readParts(pool: PoolName): Promise<PoolReading> {
    const parts: Record<OverviewPart, () => Promise<Parts & { all?: readonly ServerStatus[] }>> = {
      services: async () => ({ services: (await this.readiness.read(pool)).replicas }),
      pool: async () => {
        const status = await this.call(pool, 'lb.status', {});
        const { paused, pausedUntilMs, leases, waiters, workers, sessions } = status;
        return { paused, pausedUntilMs, leases, waiters, workers, sessions };
      },
      servers: async () => {
        const all = await this.listServers(pool);
        return { all, serversByState: countStates(all) };
      },
      jobs: async () => ({ rounds: await this.listRounds(pool) }),
      redis: async () => {
        const { usedBytes, maxBytes } = await this.memory.look();
        return { redis: { usedBytes, maxBytes: maxBytes === 0 ? undefined : maxBytes } };
      },
    };
    const unread: UnreadPart[] = [];
    const found = await Promise.all(
      Object.entries(parts).map(([part, read]) =>
        read().catch((cause: unknown) => {
          const code = isBroomwagonError(cause) ? cause.code : 'UNAVAILABLE';
          unread.push({ part: part as OverviewPart, code, reason: (cause as Error).message });
          return {};
        }),
      ),
    );
    const { all: servers, ...read } = Object.assign({}, ...found) as Parts & { all?: readonly ServerStatus[] };
    return { numbers: { ...read, pool, atMs: Date.now(), unread }, servers };
  }

  private async listServers(pool: PoolName): Promise<ServerStatus[]> {
    const all: ServerStatus[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.call(pool, 'server.list', { cursor });
      all.push(...page.servers);
      ({ cursor } = page);
    } while (cursor !== undefined);
    return all;
  }

  private async listRounds(pool: PoolName): Promise<OpenRound[]> {
    const { jobs } = await this.call(pool, 'job.list', { openOnly: true });
    const open = await Promise.all(jobs.slice(0, MAX_JOBS).map((job) => this.readRound(pool, job)));
    return open.filter((round) => round !== undefined);
  }

  /** The round of a job that is not closed; undefined if it was closed meanwhile. */
  private async readRound(pool: PoolName, job: JobId): Promise<OpenRound | undefined> {
    const { rounds } = await this.call(pool, 'round.list', { job });
    const open = rounds.find(({ state }) => state !== 'closed' && state !== 'cancelled');
    if (open === undefined) return undefined;
    const { roundId } = open;
    const status = await this.call(pool, 'round.status', { job, roundId });
    const { step, kind, state, openedAtMs, completedAtMs, acceptedGroups, neededGroups, blockedReason } = status;
    return {
      job,
      roundId,
      step,
      kind,
      state,
      openedAtMs,
      completedAtMs,
      acceptedGroups,
      neededGroups,
      ageMs: Math.max(0, (completedAtMs ?? Date.now()) - openedAtMs),
      medianMs: computeMedian(rounds, open),
      blockedReason,
    };
  }

  private call<Name extends OperationName>(pool: PoolName, name: Name, body: RequestOf<Name>): Promise<ReplyOf<Name>> {
    return this.client.call(pool, name, body, { timeoutMs: CALL_MS });
  }
}

function countStates(servers: readonly ServerStatus[]): OverviewReply['serversByState'] {
  const counts = new Map<ServerStatus['state'], number>();
  for (const { state } of servers) counts.set(state, (counts.get(state) ?? 0) + 1);
  return Object.fromEntries(counts);
}

/** Median time from opening to completion of the rounds of the same kind, milliseconds. */
export function computeMedian(
  rounds: readonly RoundSummary[],
  { roundId, kind }: Pick<RoundSummary, 'roundId' | 'kind'>,
): number | undefined {
  const times = rounds.flatMap((one) =>
    one.kind === kind && one.roundId !== roundId && one.state !== 'cancelled' && one.completedAtMs !== undefined
      ? [one.completedAtMs - one.openedAtMs]
      : [],
  );
  return times.toSorted((one, other) => one - other)[Math.floor(times.length / 2)];
}
