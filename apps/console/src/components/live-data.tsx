import { Group, Loader, Text } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import type { Failure } from '../live/live-state';
import { nowMs } from '../live/server-clock';
import type { Live } from '../live/use-live';
import { dateTime, duration } from './format';
import { formatPart, Problem } from './problem';
import { useNow } from './use-now';

/** Time after which a first read is called late, milliseconds. */
const SLOW_MS = 3_000;

interface LiveDataProps<Value> {
  live: Live<Value>;
  /** The data as the object of a sentence, for example `the servers`. */
  what: string;
  isEmpty?(value: Value): boolean;
  /** Text instead of an empty value; an old empty value has none, because there may be more by now. */
  empty?: string;
  children(value: Value): ReactNode;
}

/** Shows a live value, or why there is none: it is being read, cannot be read, or is empty. An old value has its age. */
export function LiveData<Value>({ live, what, isEmpty, empty, children }: LiveDataProps<Value>) {
  if (live.state === 'loading') return <Loading what={what} sinceMs={live.sinceMs} />;
  if (live.state === 'failed') return <FailedRead what={what} failure={live.failure} />;
  const { value } = live;
  return (
    <>
      <StaleNote live={live} what={what} />
      {isEmpty?.(value) ? live.failure === undefined && <Text>{empty}</Text> : children(value)}
    </>
  );
}

/** A line that names data being read, and says after some seconds that its answer is late. Default of `sinceMs`: now. */
export function Loading({ what, sinceMs }: { what: string; sinceMs?: number }) {
  const [shownMs] = useState(nowMs);
  const waitMs = useNow() - (sinceMs ?? shownMs);
  return (
    <Group role="status" gap="xs" data-live="loading">
      <Loader size="xs" aria-hidden="true" />
      <Text size="sm" c="dimmed">
        Reading {what} …{waitMs > SLOW_MS && ` No answer for ${duration(waitMs)}.`}
      </Text>
    </Group>
  );
}

/** Says which part is down, since when, and that the read is repeated. */
export function FailedRead({ what, failure }: { what: string; failure: Failure }) {
  const { error, sinceMs } = failure;
  const forMs = useNow() - sinceMs;
  return (
    <div data-live="failed">
      <Problem
        error={error}
        about={`${formatPart(error)} There is no answer about ${what} since ${dateTime(sinceMs)} (${duration(forMs)}). The page asks again by itself.`}
      />
    </div>
  );
}

/** Says how old a value is, if its next read is late or has failed. */
export function StaleNote({ live, what }: { live: Live<unknown>; what: string }) {
  const now = useNow();
  if (live.state !== 'read') return null;
  const { readAtMs, failure, staleAfterMs } = live;
  const ageMs = now - readAtMs;
  if (failure === undefined && ageMs <= staleAfterMs) return null;
  const why =
    failure === undefined ? 'There is no newer answer.' : `${formatPart(failure.error)} ${failure.error.reason}`;
  return (
    <Text size="sm" c="var(--stale)" role="status" data-live="stale">
      ⚠ Values of {what} from {dateTime(readAtMs)}, {duration(ageMs)} old. {why}
    </Text>
  );
}
