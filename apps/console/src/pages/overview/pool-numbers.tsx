import { Anchor, Group, Text } from '@mantine/core';
import { bytes, count, percent } from '../../components/format';
import { Stat, Stats } from '../../components/stat';
import { buildHref } from '../../address/route';
import { PauseAction } from '../fleet/pause-action';
import { formatUnread, type Overview } from './format-unread';

/** Servers by state, work in flight, and the memory of Redis. A number that is not known is a dash with its reason. */
export function PoolNumbers({ overview, onDone }: { overview: Overview; onDone(): void }) {
  const { leases, waiters, workers, paused, redis, serversByState } = overview;
  const formatTotal = (value: number | undefined) =>
    value === undefined ? { value: '–', detail: formatUnread(overview, 'pool') } : { value: count(value) };
  return (
    <Group justify="space-between" align="flex-end">
      <Stats>
        {serversByState === undefined ? (
          <Stat label="Servers" value="–" detail={formatUnread(overview, 'servers')} />
        ) : (
          <ServerStates states={serversByState} />
        )}
        <Stat label="Requests in flight" {...formatTotal(leases)} />
        <Stat label="Waiting for a server" {...formatTotal(waiters)} />
        <Stat label="Workers" {...formatTotal(workers)} />
        <Stat
          label="Pool"
          {...(paused === undefined
            ? { value: '–', detail: formatUnread(overview, 'pool') }
            : { value: paused ? 'paused' : 'running' })}
        />
        <Stat label="Memory of Redis" {...formatMemory(redis, overview)} />
      </Stats>
      {paused === false && <PauseAction onDone={onDone} />}
    </Group>
  );
}

function ServerStates({ states }: { states: NonNullable<Overview['serversByState']> }) {
  const entries = Object.entries(states) as [keyof typeof states, number][];
  if (entries.length === 0) return <Stat label="Servers" value="none" />;
  return entries.map(([state, servers]) => (
    <Stat
      key={state}
      label={`Servers ${state}`}
      value={
        <Anchor href={buildHref('fleet', { state })} inherit>
          {count(servers)}
        </Anchor>
      }
    />
  ));
}

function formatMemory(redis: Overview['redis'], overview: Overview) {
  if (redis === undefined) return { value: '–', detail: formatUnread(overview, 'redis') };
  const { usedBytes, maxBytes } = redis;
  if (maxBytes === undefined) return { value: bytes(usedBytes), detail: <Text inherit>without a limit</Text> };
  return { value: percent(usedBytes / maxBytes), detail: `${bytes(usedBytes)} of ${bytes(maxBytes)}` };
}
