import { readData, type Schemas } from '@broomwagon/admin-client';
import { compact, percent } from '../../components/format';
import { LiveData } from '../../components/live-data';
import { Section, Stat, Stats } from '../../components/stat';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { useScope } from '../../shell/scope';

/** Shows the ledger of all jobs of the pool together. Reads are rare, since the server reads every job each time. */
export function PoolLedger() {
  const { client } = useSession();
  const { pool } = useScope();
  const ledger = useLive(
    `${pool}/ledger`,
    (signal) => readData(client.GET('/api/v1/pools/{pool}/ledger', { params: { path: { pool } }, signal })),
    { everyMs: 60_000 },
  );
  return (
    <LiveData live={ledger} what="the ledger of all jobs">
      {(value) => <Totals {...value} />}
    </LiveData>
  );
}

function Totals({ jobs, summary }: Schemas['PoolLedgerReply']) {
  return (
    <Section title={`All ${jobs} jobs of the pool`}>
      <Stats>
        <Stat label="Samples trained" value={compact(summary.trained.samples)} />
        <Stat label="Length of trained / of all" value={percent(summary.lengthBias, 1)} />
        <Stat label="Off-policy tokens" value={percent(summary.offPolicyShare, 1)} />
        <Stat label="Tokens thrown away" value={percent(summary.waste.share, 1)} />
      </Stats>
    </Section>
  );
}
