import { readData } from '@broomwagon/admin-client';
import { Stack } from '@mantine/core';
import { LiveData } from '../../components/live-data';
import { Section } from '../../components/stat';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { useScope } from '../../shell/scope';
import { AlarmList } from './alarm-list';
import { OpenRounds } from './open-rounds';
import { PoolNumbers } from './pool-numbers';
import { Services } from './services';

/** First page of the console: is anything wrong, and what to do. One reply has all numbers, so they agree. */
export default function OverviewPage() {
  const { client } = useSession();
  const { pool } = useScope();
  const overview = useLive(
    `${pool}/overview`,
    (signal) => readData(client.GET('/api/v1/pools/{pool}/overview', { params: { path: { pool } }, signal })),
    {
      after: ['round.opened', 'round.completed', 'server.hung', 'server.fenced', 'pool.set-back', 'weights.committed'],
    },
  );
  return (
    <LiveData live={overview} what="the overview">
      {(value) => (
        <Stack gap="md">
          <AlarmList alarms={value.alarms} onDone={overview.refresh} />
          <PoolNumbers overview={value} onDone={overview.refresh} />
          <Section title="Open rounds">
            <OpenRounds overview={value} />
          </Section>
          <Section title="Services">
            <Services overview={value} />
          </Section>
        </Stack>
      )}
    </LiveData>
  );
}
