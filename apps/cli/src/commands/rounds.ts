import { readData, type Schemas } from '@broomwagon/admin-client';
import { type Command, Option } from 'commander';
import { count } from '../arguments';
import { CommandFailure } from '../failures';
import { formatPart, getFulfilled, throwFailure } from '../parts';
import type { Act, Session } from '../session';
import { formatDuration, formatFields, formatTable, formatTime } from '../tables';
import { formatFieldsOfEvent } from './events';
import { formatExplanation } from './explanation';

const ROUND = '/api/v1/pools/{pool}/jobs/{job}/rounds/{roundId}';

interface GroupsOptions {
  job?: string;
  set: 'live' | 'accepted' | 'failed' | 'lost';
  limit: number;
}
interface TimelineOptions {
  job?: string;
  request?: string;
  limit: number;
}
type Round = Schemas['RoundSummary'] & { job: string };

export function addRounds(program: Command, act: Act): void {
  const rounds = program.command('rounds').description('rounds of jobs');
  rounds
    .command('list', { isDefault: true })
    .description('lists the last rounds of a job, or of all jobs')
    .option('--job <job>', 'only of this job')
    .action(
      act(async (session, { job: given }: { job?: string }) => {
        const pool = await session.pool();
        const jobs = given === undefined ? await session.jobs(pool) : [given];
        const found: Round[] = [];
        for (const job of jobs) found.push(...(await fetchRounds(session, pool, job)));
        await session.show({ rounds: found }, () => formatTable(found.map(roundRow)));
      }),
    );
  rounds
    .command('get <roundId>')
    .description('shows everything about a round, with its ledger')
    .option('--job <job>', 'its job (default: the only one)')
    .action(
      act(async (session, roundId: string, { job }: { job?: string }) => {
        const pool = await session.pool();
        const path = { pool, job: await session.job(pool, job), roundId };
        const [round, ledger] = await Promise.all([
          readData(session.client.GET(ROUND, { params: { path } })),
          readData(session.client.GET(`${ROUND}/ledger`, { params: { path } })),
        ]);
        await session.show({ round, ledger }, () =>
          formatFields({ ...round, ...ledger.summary, alarms: ledger.alarms }),
        );
      }),
    );
  rounds
    .command('groups <roundId>')
    .description('lists the groups of a round')
    .option('--job <job>', 'its job (default: the only one)')
    .addOption(
      new Option('--set <set>', 'groups that are not accepted yet, or accepted, failed or lost ones')
        .choices(['live', 'accepted', 'failed', 'lost'])
        .default('live'),
    )
    .option('--limit <n>', 'maximum groups', count, 100)
    .action(
      act(async (session, roundId: string, { job, set, limit }: GroupsOptions) => {
        const pool = await session.pool();
        const path = { pool, job: await session.job(pool, job), roundId };
        const read = (cursor?: number) =>
          readData(session.client.GET(`${ROUND}/groups`, { params: { path, query: { set, cursor } } }));
        const groups = await session.all(read, (page) => page.groups, limit);
        await session.show({ groups }, () => formatTable(groups.map(groupRow)));
      }),
    );
  rounds
    .command('timeline [roundId]')
    .description('prints the events of a round (default: the open one), oldest first, then what it waits for')
    .option('--job <job>', 'its job (default: the only one)')
    .option('--request <requestId>', 'only of this request: each attempt with its server and times')
    .option('--limit <n>', 'maximum events', count, 1_000)
    .action(
      act(async (session, given: string | undefined, { job: named, request: requestId, limit }: TimelineOptions) => {
        const pool = await session.pool();
        const job = await session.job(pool, named);
        const path = { pool, job, roundId: given ?? (await findOpenRound(session, pool, job)) };
        const parts = await Promise.allSettled([
          readTimeline(session, path, { requestId, limit }),
          requestId === undefined ? readExplanation(session, path) : undefined,
        ] as const);
        const [timeline, explanation] = parts;
        const shown = { ...getFulfilled(timeline), explanation: getFulfilled(explanation) };
        if (shown.events === undefined && shown.explanation === undefined) throwFailure(parts);
        await session.show(shown, () =>
          [
            formatPart(timeline, formatTimeline),
            ...(requestId === undefined ? [formatPart(explanation, (one) => formatExplanation(one!))] : []),
          ].join('\n\n'),
        );
        throwFailure(parts);
      }),
    );
  rounds
    .command('cancel <roundId>')
    .description('ends a round without a training step')
    .option('--job <job>', 'its job (default: the only one)')
    .addOption(
      new Option('--mode <mode>', 'what becomes of its groups: to the long-tail queue, or dropped')
        .choices(['requeue', 'drop'] satisfies Schemas['CancelMode'][])
        .default('requeue'),
    )
    .option('--reason <text>', 'for the list of changes, and kept with what is dropped')
    .action(
      act(async (session, roundId: string, given: { job?: string; mode: Schemas['CancelMode']; reason?: string }) => {
        const pool = await session.pool();
        const { mode, reason } = given;
        const path = { pool, job: await session.job(pool, given.job), roundId };
        const fate = mode === 'drop' ? 'Everything it has generated is dropped' : 'Its groups wait for a later round';
        await session.confirm(`Cancel round ${roundId} of job ${path.job}? ${fate}.`);
        const reply = await readData(
          session.client.POST(`${ROUND}/cancel`, { params: { path }, body: { mode, reason } }),
        );
        await session.show(reply, ({ groups }) => `${roundId}: cancelled, ${groups} groups (${mode})`);
      }),
    );
}

async function fetchRounds({ client }: Session, pool: string, job: string): Promise<Round[]> {
  const params = { path: { pool, job } };
  const { rounds } = await readData(client.GET('/api/v1/pools/{pool}/jobs/{job}/rounds', { params }));
  return rounds.map((round) => ({ job, ...round }));
}

interface RoundPath {
  pool: string;
  job: string;
  roundId: string;
}
interface Timeline {
  events: Schemas['PoolEvent'][];
  missingEvents: number;
}

/** @throws CommandFailure without an open round */
async function findOpenRound({ client }: Session, pool: string, job: string): Promise<string> {
  const params = { path: { pool, job } };
  const { openRoundId } = await readData(client.GET('/api/v1/pools/{pool}/jobs/{job}', { params }));
  if (openRoundId === undefined) throw new CommandFailure(`job ${job} has no open round: name a round`);
  return openRoundId;
}

function readExplanation({ client }: Session, path: RoundPath): Promise<Schemas['ExplainRoundReply']> {
  return readData(client.GET(`${ROUND}/explanation`, { params: { path } }));
}

async function readTimeline(
  session: Session,
  path: RoundPath,
  { requestId, limit }: { requestId?: string; limit: number },
): Promise<Timeline> {
  let missingEvents = 0;
  const read = (cursor?: number) =>
    readData(session.client.GET(`${ROUND}/timeline`, { params: { path, query: { requestId, cursor } } }));
  const takeEvents = (page: Schemas['RoundTimelineReply']) => {
    missingEvents += page.missingEvents;
    return page.events;
  };
  const events = await session.all(read, takeEvents, limit);
  return { events, missingEvents };
}

function formatTimeline({ events, missingEvents }: Timeline): string {
  const gap = missingEvents === 0 ? [] : [`(${missingEvents} events are missing: the stream has lost them)`];
  return [...events.map(eventLine), ...gap].join('\n') || '(none)';
}

function groupRow(group: Schemas['GroupStatus']) {
  const { groupId, state, liveSamples, finishedSamples, samples, tokens, cuts, reason } = group;
  return { group: groupId, state, live: liveSamples, finished: `${finishedSamples}/${samples}`, tokens, cuts, reason };
}

function eventLine({ atMs, type, pool: _pool, sequence: _sequence, ...fields }: Schemas['PoolEvent']): string {
  return [new Date(atMs).toISOString(), type, ...formatFieldsOfEvent(fields)].join(' ');
}

function roundRow(round: Round) {
  const { job, roundId, step, kind, state, acceptedGroups, neededGroups, openedAtMs, completedAtMs } = round;
  const groups = `${acceptedGroups}/${neededGroups}`;
  const took = completedAtMs === undefined ? undefined : formatDuration(completedAtMs - openedAtMs);
  return { job, round: roundId, step, kind, state, groups, opened: formatTime(openedAtMs), took };
}
