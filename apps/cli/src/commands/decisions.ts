import { readData, type Schemas } from '@broomwagon/admin-client';
import type { DecisionSnapshot } from '@broomwagon/contracts';
import type { Command } from 'commander';
import { count } from '../arguments';
import { CommandFailure, UsageError } from '../failures';
import type { Act, Session } from '../session';
import { formatTable, formatTime } from '../tables';

type Record = Schemas['DecisionRecord'];
/** A receipt of a decision, and the choice that the policy makes again from the snapshot of the receipt. */
interface Replay {
  seq: number;
  acquireId: string;
  serverId: string;
  branch: string;
  /** The second choice; absent if the snapshot is truncated. */
  again?: { serverId: string; branch: string };
  isSame?: boolean;
}

export function addDecisions(program: Command, act: Act): void {
  const decisions = program.command('decisions').description('how servers were chosen for acquires');
  decisions
    .command('list', { isDefault: true })
    .description('lists the last decisions, latest first')
    .option('--limit <n>', 'maximum decisions', count, 20)
    .action(
      act(async (session, { limit }: { limit: number }) => {
        const found = await readDecisions(session, limit);
        await session.show({ decisions: found }, () => formatTable(found.map(decisionRow)));
      }),
    );
  decisions
    .command('replay [acquireIds...]')
    .description('makes the decisions that have a snapshot again and compares them; exit code 1 when one differs')
    .option('--limit <n>', 'maximum decisions', count, 64)
    .addHelpText(
      'after',
      '\nAn acquire with `explain`, and every n-th by the setting decisionSampleEvery,\nhas a snapshot.',
    )
    .action(
      act(async (session, acquireIds: string[], { limit }: { limit: number }) => {
        const found = await readDecisions(session, limit, true);
        const wanted = found.filter(({ acquireId }) => acquireIds.length === 0 || acquireIds.includes(acquireId));
        const missing = acquireIds.filter((id) => !wanted.some(({ acquireId }) => acquireId === id));
        if (missing.length > 0) throw new UsageError(`there is no decision with a snapshot for ${missing.join(', ')}`);
        const replays: Replay[] = [];
        for (const record of wanted) replays.push(await replay(record));
        await session.show({ replays }, () => formatTable(replays.map(replayRow)));
        const different = replays.filter(({ isSame }) => isSame === false).length;
        if (different > 0) throw new CommandFailure(`${different} decisions differ from their replay`);
      }),
    );
}

function readDecisions(session: Session, most: number, full?: true): Promise<Record[]> {
  const read = async (cursor?: string) => {
    const query = { cursor, full, limit: Math.min(most, full ? 16 : 128) };
    const params = { path: { pool: await session.pool() }, query };
    return readData(session.client.GET('/api/v1/pools/{pool}/decisions', { params }));
  };
  return session.all(read, (page) => page.decisions, most);
}

async function replay({ seq, acquireId, serverId, decision }: Record): Promise<Replay> {
  // The policies are loaded here, because no other command needs them.
  const { replayDecision } = await import('@broomwagon/policies');
  const { snapshot, via, key } = decision;
  // For a decision after a wait, `via` has the rule that chose the server.
  const branch = decision.branch === 'waited' ? (via ?? decision.branch) : decision.branch;
  const receipt = { seq, acquireId, serverId, branch };
  const again = replayDecision(snapshot as DecisionSnapshot);
  if (again === undefined) return receipt;
  const isSame = again.server === serverId && again.branch === branch && again.key === key;
  return { ...receipt, again: { serverId: again.server, branch: again.branch }, isSame };
}

function decisionRow({ seq, acquireId, serverId, decidedAtMs, decision }: Record) {
  const { policy, branch, via, inflight, eligible } = decision;
  return {
    seq,
    time: formatTime(decidedAtMs),
    acquire: acquireId,
    server: serverId,
    policy,
    branch,
    via,
    inflight,
    eligible,
  };
}

function replayRow({ seq, acquireId, serverId, branch, again, isSame }: Replay) {
  const result = isSame === undefined ? 'snapshot is truncated' : isSame ? 'same' : 'DIFFERENT';
  const chosen = { server: serverId, branch };
  return { seq, acquire: acquireId, ...chosen, 'again server': again?.serverId, 'again branch': again?.branch, result };
}
