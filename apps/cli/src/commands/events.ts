import { iterateEvents, type StreamedEvent } from '@broomwagon/admin-client';
import type { Command } from 'commander';
import { count, repeated } from '../arguments';
import type { Act } from '../session';

type EventType = StreamedEvent['event']['type'];
interface EventOptions {
  follow?: true;
  after?: string;
  limit?: number;
  type?: string[];
  job?: string;
  round?: string;
  server?: string;
}

export function addEvents(program: Command, act: Act): void {
  program
    .command('events')
    .description('prints the stored events of the pool, one a line')
    .option('--follow', 'print new events until Ctrl-C, not those that are stored (unless --after is given)')
    .option('--after <id>', 'begin after this event')
    .option('--limit <n>', 'end after so many events', count)
    .option('--type <type>', 'only of this type, e.g. round.completed; repeatable', repeated)
    .option('--job <job>', 'only of this job')
    .option('--round <roundId>', 'only of this round')
    .option('--server <serverId>', 'only of this server')
    .action(
      act(async (session, { follow, after, limit = Infinity, type, job, round, server }: EventOptions) => {
        // The service checks the types.
        const query = { type: type as EventType[] | undefined, job, roundId: round, serverId: server };
        const lastId = after ?? (follow ? undefined : '0');
        let printed = 0;
        for await (const streamed of iterateEvents(session.client, await session.pool(), {
          query,
          lastId,
          once: !follow,
        })) {
          await session.write(`${session.options.json ? JSON.stringify(streamed) : formatEvent(streamed)}\n`);
          printed += 1;
          if (printed >= limit) break;
        }
      }),
    );
}

function formatEvent({
  id,
  event: { type, atMs, pool: _pool, sequence: _sequence, ...fields },
}: StreamedEvent): string {
  return [id, new Date(atMs).toISOString(), type, ...formatFieldsOfEvent(fields)].join(' ');
}

/** Formats the fields of an event as words `name=value`. */
export function formatFieldsOfEvent(fields: object): string[] {
  return Object.entries(fields).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
}
