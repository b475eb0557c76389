import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { useMemo, useState } from 'react';
import type { StreamedEvent } from '@broomwagon/admin-client';
import { type Column, DataTable } from '../../components/data-table';
import { count, dateTime } from '../../components/format';
import { FailedRead, Loading } from '../../components/live-data';
import { useEventList } from '../../live/events';
import type { PoolEvent } from '../../live/event-types';
import { ALL_SELDOM, EventFilter, listTypes } from './event-filter';

const COLUMNS: Column<StreamedEvent>[] = [
  { title: 'Number', value: ({ event }) => event.sequence, align: 'right', width: 90 },
  { title: 'Time', value: ({ event }) => event.atMs, format: dateTime, width: 200 },
  {
    title: 'Event',
    value: ({ event }) => event.type,
    cell: ({ event }) => (
      <Text span size="sm" fw={600}>
        {event.type}
      </Text>
    ),
    width: 170,
  },
  { title: 'What', value: ({ event }) => formatEvent(event) },
];

export default function EventsPage() {
  const [choice, setChoice] = useState(ALL_SELDOM);
  const types = useMemo(() => listTypes(choice), [choice]);
  const [text, setText] = useState('');
  const [held, setHeld] = useState<readonly StreamedEvent[]>();
  const { events, link } = useEventList(types);
  const listed = held ?? events;
  const shown = useMemo(() => {
    const wanted = text.trim().toLowerCase();
    return listed.filter(
      ({ event }) => types.includes(event.type) && (wanted === '' || formatEvent(event).toLowerCase().includes(wanted)),
    );
  }, [listed, types, text]);
  return (
    <Stack gap="md">
      {link?.state === 'connecting' && <Loading what="new events" sinceMs={link.sinceMs} />}
      {link?.state === 'broken' && <FailedRead what="new events" failure={link.failure} />}
      <Group justify="space-between">
        <EventFilter choice={choice} onChange={setChoice} />
        <Group gap="xs">
          <TextInput
            aria-label="Filter events by text"
            size="xs"
            placeholder="round, group, server"
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
          />
          <Button size="xs" variant="default" onClick={() => setHeld(held === undefined ? events : undefined)}>
            {held === undefined ? 'Hold' : 'Continue'}
          </Button>
        </Group>
      </Group>
      <DataTable
        label="Events, latest first"
        columns={COLUMNS}
        rows={shown}
        toKey={({ id }) => id}
        empty="No event since this page was opened. The list keeps the last 1,000."
        height={640}
      />
      <Text size="xs" c="dimmed" aria-live="off">
        {count(shown.length)} of the last {count(listed.length)} events
      </Text>
    </Stack>
  );
}

/** Formats the fields of an event that not all events have. */
function formatEvent(event: PoolEvent): string {
  const { type: _type, pool: _pool, atMs: _atMs, sequence: _sequence, ...fields } = event;
  return Object.entries(fields)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(' · ');
}
