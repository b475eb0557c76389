import { readData, decodeText, type Schemas } from '@broomwagon/admin-client';
import type { Command } from 'commander';
import { count } from '../arguments';
import { CommandFailure, UsageError } from '../failures';
import type { Act, Session } from '../session';
import { formatFields, formatTable } from '../tables';

const TAIL = '/api/v1/pools/{pool}/jobs/{job}/longtail';
interface OfJob {
  job?: string;
}

/** Path fields of a long-tail queue: pool, and the job of `--job` or the only job. */
async function resolveJobPath(session: Session, { job }: OfJob) {
  const pool = await session.pool();
  return { pool, job: await session.job(pool, job) };
}

export function addTail(program: Command, act: Act): void {
  const tail = program.command('tail').description('the long-tail queue of a job');
  const command = (name: string, about: string, options?: { isDefault: true }) =>
    tail.command(name, options).description(about).option('--job <job>', 'job (default: the only one)');
  command('list', 'lists the queue, oldest first', { isDefault: true })
    .option('--limit <n>', 'maximum groups', count, 100)
    .action(
      act(async (session, { limit, ...given }: OfJob & { limit: number }) => {
        const path = await resolveJobPath(session, given);
        const read = (cursor?: number) => readData(session.client.GET(TAIL, { params: { path, query: { cursor } } }));
        const groups = await session.all(read, (page) => page.groups, limit);
        await session.show({ groups }, () => formatTable(groups.map(groupRow)));
      }),
    );
  command('stats', 'shows the size of the queue').action(
    act(async (session, given: OfJob) => {
      const path = await resolveJobPath(session, given);
      await session.show(await readData(session.client.GET(`${TAIL}/stats`, { params: { path } })), formatFields);
    }),
  );
  command('export', 'writes the whole queue as JSON lines').action(
    act(async (session, given: OfJob) => {
      const params = { path: await resolveJobPath(session, given) };
      const body = await readData(session.client.GET(`${TAIL}/export`, { params, parseAs: 'stream' }));
      for await (const text of decodeText(body!)) await session.write(text);
    }),
  );
  command('requeue <requestIds...>', 'takes the groups of running requests out of their round, into the queue').action(
    act(async (session, requestIds: string[], given: OfJob) => {
      const path = await resolveJobPath(session, given);
      const requests = await Promise.all(
        requestIds.map(async (requestId) => {
          const params = { path: { pool: path.pool, requestId } };
          const call = session.client.GET('/api/v1/pools/{pool}/requests/{requestId}', { params });
          return { requestId, attempt: (await readData(call)).attempt };
        }),
      );
      await session.confirm(`Take the groups of ${requestIds.join(', ')} out of their round?`);
      const call = session.client.POST(`${TAIL}/requeue`, { params: { path }, body: { requests } });
      const reply = await readData(call);
      await session.show(reply, ({ results }) => formatTable(results.map(requeueRow)));
      const refused = reply.results.filter(({ error }) => error !== undefined).length;
      if (refused > 0) throw new CommandFailure(`${refused} requests were refused`);
    }),
  );
  command('drop [groupIds...]', 'drops groups of the queue for good')
    .option('--all', 'all groups of the queue')
    .requiredOption('--reason <text>', 'stored with the groups')
    .action(
      act(async (session, groupIds: string[], { all, reason, ...given }: OfJob & { all?: true; reason: string }) => {
        if (groupIds.length > 0 === (all === true)) throw new UsageError('name groups, or --all');
        const path = await resolveJobPath(session, given);
        const what = all ? 'all groups' : groupIds.join(', ');
        await session.confirm(`Drop ${what} of the long-tail queue of job ${path.job}? Their tokens are deleted.`);
        const read = (cursor?: number) => {
          const body = { reason, cursor, ...(all ? { all } : { groupIds }) };
          return readData(session.client.POST(`${TAIL}/drop`, { params: { path }, body }));
        };
        const pages = await session.all(read, (page) => [page]);
        const dropped = pages.flatMap((page) => page.dropped);
        const notQueued = pages.flatMap((page) => page.notQueued);
        await session.show({ dropped, notQueued }, () => `${dropped.length} groups dropped`);
        if (notQueued.length > 0) throw new CommandFailure(`not in the queue: ${notQueued.join(', ')}`);
      }),
    );
}

function groupRow({ groupId, cuts, firstStep, finishedSamples, samples, tokens }: Schemas['LongtailGroup']) {
  return { group: groupId, cuts, 'first step': firstStep, finished: `${finishedSamples}/${samples}`, tokens };
}

function requeueRow({ requestId, state, error }: Schemas['RequeueResult']) {
  return { request: requestId, state, error: error?.code, reason: error?.message };
}
