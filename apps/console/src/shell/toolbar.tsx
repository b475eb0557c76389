import {
  ActionIcon,
  Badge,
  Button,
  Group,
  Menu,
  Select,
  Tooltip,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core';
import { setZone, useZone } from '../components/zone';
import { useSession } from '../session/session';
import { setParameters } from '../address/route';
import { useScope } from './scope';

/** Fields that select pool and job. */
export function ScopeSelects() {
  const { pool, pools, job, jobs } = useScope();
  return (
    <>
      <Select
        aria-label="Pool"
        size="xs"
        w={130}
        data={listOptions(pools.value?.pools, pool)}
        value={pool}
        allowDeselect={false}
        onChange={(next) => setParameters({ pool: next ?? undefined, job: undefined })}
      />
      <Select
        aria-label="Job"
        size="xs"
        w={170}
        placeholder={jobs.state === 'read' ? 'no job yet' : 'jobs not known'}
        searchable
        data={listOptions(jobs.value?.all, job)}
        value={job ?? null}
        allowDeselect={false}
        onChange={(next) => setParameters({ job: next ?? undefined })}
      />
    </>
  );
}

/** Shows who is signed in, and switches the zone of times and the color scheme. */
export function Toolbar() {
  const { identity, signOut } = useSession();
  const zone = useZone();
  return (
    <Group gap="xs" wrap="nowrap">
      <Menu position="bottom-end">
        <Menu.Target>
          <Button size="compact-sm" variant="default" aria-label={`${identity.name}, role ${identity.role}`}>
            <Badge size="sm" variant="light" data-role={identity.role}>
              {identity.role}
            </Badge>
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>{identity.name}</Menu.Label>
          <Menu.Item onClick={() => setZone(zone === 'utc' ? 'local' : 'utc')}>
            Show times in {zone === 'utc' ? 'the zone of this browser' : 'UTC'}
          </Menu.Item>
          <Menu.Item onClick={signOut}>Sign out</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <ColorSwitch />
    </Group>
  );
}

/** The known names, and the chosen name, which may be unknown. */
function listOptions(known: readonly string[] | undefined, chosen: string | undefined): string[] {
  return [...new Set([...(chosen === undefined ? [] : [chosen]), ...(known === undefined ? [] : known)])];
}

function ColorSwitch() {
  const { setColorScheme } = useMantineColorScheme();
  const other = useComputedColorScheme('light') === 'dark' ? 'light' : 'dark';
  return (
    <Tooltip label={`Use ${other} colors`}>
      <ActionIcon variant="default" aria-label={`Use ${other} colors`} onClick={() => setColorScheme(other)}>
        <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
          <circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" strokeWidth="1.5" />
          <path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" />
        </svg>
      </ActionIcon>
    </Tooltip>
  );
}
