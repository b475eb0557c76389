import { Chip, Group, Switch } from '@mantine/core';
import { useMemo } from 'react';
import { useParameter } from '../../address/route';
import { EVENT_TYPES, type PoolEventType, SELDOM_EVENTS } from '../../live/event-types';

/** Subjects of events. The subject is the first part of a type, such as `round`. */
const SUBJECTS = [...new Set(EVENT_TYPES.map(getSubject))];

export interface EventChoice {
  subjects: string[];
  /** Whether events of each sample, group and server are shown too. */
  isWhole: boolean;
}

/** The choice in the address: without a parameter all subjects, and no events of samples, groups and servers. */
export function useEventChoice(): [choice: EventChoice, set: (choice: EventChoice) => void] {
  const [given, setGiven] = useParameter('subjects', SUBJECTS.join());
  const [whole, setWhole] = useParameter('whole', 'no');
  const choice = useMemo(
    () => ({ subjects: SUBJECTS.filter((one) => given.split(',').includes(one)), isWhole: whole === 'yes' }),
    [given, whole],
  );
  const set = ({ subjects, isWhole }: EventChoice) => {
    setGiven(SUBJECTS.filter((one) => subjects.includes(one)).join());
    setWhole(isWhole ? 'yes' : 'no');
  };
  return [choice, set];
}

function getSubject(type: PoolEventType): string {
  return type.split('.')[0]!;
}

export function listTypes({ subjects, isWhole }: EventChoice): PoolEventType[] {
  return (isWhole ? EVENT_TYPES : SELDOM_EVENTS).filter((type) => subjects.includes(getSubject(type)));
}

export function EventFilter({ choice, onChange }: { choice: EventChoice; onChange(choice: EventChoice): void }) {
  return (
    <Group gap="lg">
      <Group gap={6} role="group" aria-label="What the events are about">
        <Chip.Group multiple value={choice.subjects} onChange={(subjects) => onChange({ ...choice, subjects })}>
          {SUBJECTS.map((subject) => (
            <Chip key={subject} value={subject} size="xs">
              {subject}
            </Chip>
          ))}
        </Chip.Group>
      </Group>
      <Switch
        size="xs"
        label="Also of each sample, group and server"
        checked={choice.isWhole}
        onChange={(event) => onChange({ ...choice, isWhole: event.currentTarget.checked })}
      />
    </Group>
  );
}
