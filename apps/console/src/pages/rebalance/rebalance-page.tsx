import { readData, type Schemas } from '@broomwagon/admin-client';
import { Group, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { ActionButton } from '../../actions/action-button';
import { DataTable } from '../../components/data-table';
import { count, dateTime } from '../../components/format';
import { LiveData } from '../../components/live-data';
import { Section, Stat, Stats } from '../../components/stat';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { setParameters, useRoute } from '../../address/route';
import { useScope } from '../../shell/scope';
import { MOVE_COLUMNS } from './move-columns';

type Plan = Schemas['RebalanceStatus'];

const REASONS: Record<NonNullable<Plan['reason']>, string> = {
  balanced:
    'no server is above the smallest batch tier that the load allows, and no waiting request could run elsewhere',
  'no-room': 'no KV cache has room for the requests',
  'held-back': 'most requests are nearly done, or were moved recently',
  'not-worth-it': 'the moves would cost more than they gain',
};
export default function RebalancePage() {
  const { client } = useSession();
  const { pool } = useScope();
  const planId = useRoute().parameters.get('plan') ?? undefined;
  const [isDone, setDone] = useState(false);
  const settings = useLive(
    `${pool}/rebalance`,
    (signal) => readData(client.GET('/api/v1/pools/{pool}/rebalance', { params: { path: { pool } }, signal })),
    { everyMs: 30_000 },
  );
  const plan = useLive(
    planId && `${pool}/${planId}`,
    async (signal) => {
      const params = { path: { pool, planId: planId! } };
      const found = await readData(client.GET('/api/v1/pools/{pool}/rebalance/plans/{planId}', { params, signal }));
      setDone(found.states.planned === undefined && found.states.sent === undefined);
      return found;
    },
    { everyMs: isDone ? 30_000 : 2_000 },
  );
  return (
    <Stack gap="md">
      <Group justify="space-between">
        <LiveData live={settings} what="the settings of the rebalancer">
          {({ mode, policy }) => (
            <Text size="sm" c="dimmed">
              The rebalancer of this pool is {mode}, with the policy {policy}.
            </Text>
          )}
        </LiveData>
        <Group gap="xs">
          <ActionButton
            label="Plan"
            title="Plan a rebalance?"
            about="The plan is stored for an hour. No request is moved."
            run={async (key) => {
              const params = { path: { pool }, header: { 'Idempotency-Key': key } };
              const made = await readData(client.POST('/api/v1/pools/{pool}/rebalance/plans', { params, body: {} }));
              setParameters({ plan: made.planId });
              return `The plan has ${made.moves} moves.`;
            }}
          />
          <ActionButton
            label="Execute"
            title="Execute this plan?"
            about={`${plan.value?.moves} requests continue on other servers. A move whose request or server has changed meanwhile is left out.`}
            isDangerous
            isDisabled={!plan.value || plan.value.moves === 0}
            run={async (key) => {
              const params = { path: { pool, planId: planId! }, header: { 'Idempotency-Key': key } };
              const address = '/api/v1/pools/{pool}/rebalance/plans/{planId}/execute';
              const { sentMoves } = await readData(client.POST(address, { params, body: {} }));
              return `${sentMoves} moves are sent.`;
            }}
            onDone={plan.refresh}
          />
        </Group>
      </Group>
      {planId === undefined ? (
        <Text>There is no plan on this page yet.</Text>
      ) : (
        <LiveData live={plan} what="the plan">
          {(found) => <PlanView plan={found} />}
        </LiveData>
      )}
    </Stack>
  );
}

function PlanView({ plan }: { plan: Plan }) {
  const { planId, plannedAtMs, moves, sentMoves, states, reason, results } = plan;
  const seconds = (value?: number) => (value === undefined ? '–' : `${value.toFixed(1)} s`);
  return (
    <Section
      title={`Plan of ${dateTime(plannedAtMs)}`}
      aside={
        <Text size="xs" c="dimmed">
          {planId}
        </Text>
      }
    >
      <Stack>
        <Stats>
          <Stat label="Moves" value={count(moves)} detail={`${count(sentMoves)} sent`} />
          <Stat label="Moved" value={states.moved === undefined ? 'none' : count(states.moved)} />
          <Stat label="Largest batch" value={plan.tierBefore ?? '–'} detail={`then ${plan.tierAfter ?? '–'}`} />
          <Stat label="Time saved" value={seconds(plan.gainSeconds)} />
          <Stat label="Engine time of the moves" value={seconds(plan.costSeconds)} />
          <Stat label="Longest stall" value={seconds(plan.stallSeconds)} />
        </Stats>
        {reason !== undefined && <Text>No moves: {REASONS[reason]}.</Text>}
        <DataTable
          label="Moves of the plan"
          columns={MOVE_COLUMNS}
          rows={results}
          toKey={({ requestId, leaseId }) => requestId ?? leaseId ?? ''}
          empty="The plan has no moves."
        />
        {results.length < moves && (
          <Text size="xs" c="dimmed">
            These are the first {results.length} of {moves} moves.
          </Text>
        )}
      </Stack>
    </Section>
  );
}
