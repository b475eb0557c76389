import { AppShell, Burger, Center, Group, NavLink, ScrollArea, Stack, Text, Title } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Suspense, useEffect } from 'react';
import { LiveData, Loading } from '../components/live-data';
import { useZone } from '../components/zone';
import type { Live } from '../live/use-live';
import { type Page, PAGES } from '../pages';
import { useSession } from '../session/session';
import { buildHref, useRoute } from '../address/route';
import { ScopeProvider, useScope } from './scope';
import { ScopeSelects, Toolbar } from './toolbar';

/** The frame of the console: navigation, toolbar and the present page. */
export function Shell() {
  return (
    <ScopeProvider none={(pools) => <NoPool pools={pools} />}>
      <Frame />
    </ScopeProvider>
  );
}

function Frame() {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  const { page: path } = useRoute();
  const page = path === '' ? PAGES[0] : PAGES.find((one) => one.path === path);
  const title = page?.title ?? 'No such page';
  useEffect(() => {
    document.title = `${title} · Broomwagon`;
  }, [title]);
  return (
    <AppShell
      header={{ height: 52 }}
      navbar={{ width: 184, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      padding="md"
    >
      <a className="skip-link" href="#main" onClick={focusMain}>
        Skip to the page
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={isOpen} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Navigation" />
            <img src="/favicon.svg" width={24} height={24} alt="" />
            <Text fw={600}>Broomwagon</Text>
          </Group>
          <Group gap="xs" wrap="nowrap">
            <Group gap="xs" wrap="nowrap" visibleFrom="sm">
              <ScopeSelects />
            </Group>
            <Toolbar />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" component="nav" aria-label="Pages">
        <Stack gap="xs" hiddenFrom="sm" mb="xs">
          <ScopeSelects />
        </Stack>
        <ScrollArea>
          {PAGES.map((one) => (
            <NavLink
              key={one.path}
              href={buildHref(one.path)}
              label={one.title}
              active={one === page}
              aria-current={one === page ? 'page' : undefined}
              onClick={close}
            />
          ))}
        </ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main id="main" tabIndex={-1}>
        <Stack gap="md">
          <div>
            <Title order={1} size="h2">
              {title}
            </Title>
            <Text c="dimmed" size="sm">
              {page?.about ?? `The console has no page ${path} (any more): choose one of the navigation.`}
            </Text>
          </div>
          {page && <PageView page={page} />}
        </Stack>
      </AppShell.Main>
    </AppShell>
  );
}

/** The contents of a page, or why they cannot be shown. */
function PageView({ page }: { page: Page }) {
  const { pool, job, jobs } = useScope();
  const { identity, may } = useSession();
  const zone = useZone();
  if (page.role !== undefined && !may(page.role)) {
    return (
      <Text>
        This page needs the role {page.role}; your token has the role {identity.role}.
      </Text>
    );
  }
  if (page.needsJob && job === undefined) {
    return (
      <LiveData live={jobs} what="the jobs">
        {() =>
          jobs.failure === undefined && <Text>There is no job yet. A trainer makes one with its first round.</Text>
        }
      </LiveData>
    );
  }
  return (
    <Suspense fallback={<Loading what="the page" />}>
      <page.view key={`${pool}/${job}/${zone}`} />
    </Suspense>
  );
}

function focusMain(event: React.MouseEvent): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

function NoPool({ pools }: { pools: Live<unknown> }) {
  return (
    <Center h="100vh" p="md" component="main">
      <LiveData live={pools} what="the pools">
        {() =>
          pools.failure === undefined && (
            <Text role="status">There is no pool yet. This page looks again every ten seconds.</Text>
          )
        }
      </LiveData>
    </Center>
  );
}
