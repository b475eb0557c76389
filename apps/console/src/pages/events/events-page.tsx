import { Button, Group, Select, Stack, Text, TextInput } from '@mantine/core';
import { useMemo, useState } from 'react';
import type { StreamedEvent } from '@broomwagon/admin-client';
import { type Column, DataTable } from '../../components/data-table';
import { count, dateTime } from '../../components/format';
import { FailedRead, LiveData, Loading } from '../../components/live-data';
import { useEventList } from '../../live/events';
import type { PoolEvent } from '../../live/event-types';
import { nowMs } from '../../live/server-clock';
import { useLive } from '../../live/use-live';
import { useSession } from '../../session/session';
import { useParameter } from '../../address/route';
import { useScope } from '../../shell/scope';
import { EventFilter, listTypes, useEventChoice } from './event-filter';
import { MAX_STORED, readStored } from './read-stored';

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

const HOUR_MS = 3_600_000;
/** Interval at which stored events are read again, milliseconds: new events come by the stream. */
const STORED_EVERY_MS = 60_000;
const TIMES = [
  { value: 'now', label: 'from now on' },
  { value: '1', label: 'the last hour' },
  { value: '6', label: 'the last 6 hours' },
  { value: '24', label: 'the last 24 hours' },
];

/** Events as they happen, and stored events of up to a day. */
export default function EventsPage() {
  const { client } = useSession();
  const { pool } = useScope();
  const [choice, setChoice] = useEventChoice();
  const [hours, setHours] = useParameter('hours', '1');
  const [text, setText] = useParameter('text', '');
  const types = useMemo(() => listTypes(choice), [choice]);
  const [held, setHeld] = useState<readonly StreamedEvent[]>();
  const { events, link } = useEventList(types);
  const stored = useLive(
    hours === 'now' ? undefined : `${pool}/events/${hours}/${types.join()}`,
    (signal) => readStored(client, pool, { type: types, sinceMs: nowMs() - Number(hours) * HOUR_MS }, signal),
    { everyMs: STORED_EVERY_MS },
  );
  const listed = held ?? merge(events, stored.value);
  const shown = useMemo(() => {
    const wanted = text.trim().toLowerCase();
    return listed.filter(
      ({ event }) =>
        types.includes(event.type) &&
        (wanted === '' || `${event.type} ${formatEvent(event)}`.toLowerCase().includes(wanted)),
    );
  }, [listed, types, text]);
  return (
    <Stack gap="md">
      {link?.state === 'connecting' && <Loading what="new events" sinceMs={link.sinceMs} />}
      {link?.state === 'broken' && <FailedRead what="new events" failure={link.failure} />}
      {hours !== 'now' && (
        <LiveData live={stored} what="the stored events">
          {() => null}
        </LiveData>
      )}
      <Group justify="space-between">
        <EventFilter choice={choice} onChange={setChoice} />
        <Group gap="xs">
          <Select
            aria-label="Time of the events"
            size="xs"
            w={150}
            data={TIMES}
            value={hours}
            allowDeselect={false}
            onChange={(next) => setHours(next!)}
          />
          <TextInput
            aria-label="Filter events by text"
            size="xs"
            placeholder="round, group, server"
            value={text}
            onChange={(event) => setText(event.currentTarget.value)}
          />
          <Button size="xs" variant="default" onClick={() => setHeld(held === undefined ? listed : undefined)}>
            {held === undefined ? 'Hold' : 'Continue'}
          </Button>
        </Group>
      </Group>
      <DataTable
        label="Events, latest first"
        columns={COLUMNS}
        rows={shown}
        toKey={({ id }) => id}
        empty={hours === 'now' ? 'No event since this page was opened.' : 'No such event in this time.'}
        height={640}
      />
      <Text size="xs" c="dimmed" aria-live="off">
        {count(shown.length)} of {count(listed.length)} events. The list has at most the last {count(MAX_STORED)} stored
        events, and the last 1,000 since the page was opened.
      </Text>
    </Stack>
  );
}

/** New events, then the stored events that precede them. Ids are places in the stream. */
function merge(events: readonly StreamedEvent[], stored: readonly StreamedEvent[] | undefined) {
  if (stored === undefined) return events;
  const known = new Set(events.map(({ id }) => id));
  const both = [...events, ...stored.filter(({ id }) => !known.has(id))];
  return both.sort((one, other) => Number(other.id) - Number(one.id));
}

/** Formats the fields of an event that not all events have. */
function formatEvent(event: PoolEvent): string {
  const { type: _type, pool: _pool, atMs: _atMs, sequence: _sequence, ...fields } = event;
  return Object.entries(fields)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(' · ');
}
