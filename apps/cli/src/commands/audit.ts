import { readData, type Schemas } from '@broomwagon/admin-client';
import type { Command } from 'commander';
import { count, durationOption } from '../arguments';
import { CommandFailure } from '../failures';
import type { Act } from '../session';
import { formatFields, formatTable, formatTime } from '../tables';

interface LogOptions {
  since: number;
  actor?: string;
  operation?: string;
  limit: number;
}

export function addAudit(program: Command, act: Act): void {
  program
    .command('audit')
    .description('compares the counts of the pool with its leases and requests; exit code 1 when one is wrong')
    .action(
      act(async (session) => {
        const params = { path: { pool: await session.pool() } };
        const reply = await readData(session.client.GET('/api/v1/pools/{pool}/audit', { params }));
        await session.show(reply, auditText);
        if (!reply.balanced) throw new CommandFailure(`${reply.findingCount} findings`);
      }),
    );
  program
    .command('changes')
    .description('lists changes made through the REST API, refused ones too: who, what, result')
    .addOption(durationOption('--since <duration>', 'how far back', '1d'))
    .option('--actor <id>', 'only by this actor, as in the column ACTOR ID')
    .option('--operation <name>', 'only of this operation, e.g. server.drain')
    .option('--limit <n>', 'maximum changes, the latest', count, 100)
    .action(
      act(async (session, { since, actor: actorId, operation, limit }: LogOptions) => {
        const sinceMs = Date.now() - since;
        const read = (cursor?: number) => {
          const query = { pool: session.options.pool, actorId, operation, sinceMs, cursor };
          return readData(session.client.GET('/api/v1/audit-log', { params: { query } }));
        };
        const entries = (await session.all(read, (page) => page.entries)).slice(-limit);
        await session.show({ entries }, () => formatTable(entries.map(entryRow)));
      }),
    );
}

function auditText({ balanced, findings, counts, unproven }: Schemas['AuditPoolReply']): string {
  const right = unproven.length === 0 ? 'All counts are right.' : 'No count is wrong; some were not checked.';
  const result = balanced ? right : formatTable(findings.map(({ check, message }) => ({ check, message })));
  return [formatFields({ ...counts, unproven }), result].join('\n\n');
}

export function entryRow({ atMs, actor, actorId, role, operation, pool, request, result }: Schemas['AuditEntry']) {
  return { time: formatTime(atMs), actor, 'actor id': actorId, role, operation, pool, request, result };
}
