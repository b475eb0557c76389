import { AppShell, Burger, Center, Group, Loader, NavLink, ScrollArea, Stack, Text, Title } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Suspense, useEffect } from 'react';
import { LiveData } from '../components/live-data';
import { useZone } from '../components/zone';
import type { Live } from '../live/use-live';
import { PAGES } from '../pages';
import { buildHref, useRoute } from './route';
import { ScopeProvider, useScope } from './scope';
import { Toolbar } from './toolbar';

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
  const { pool, job, jobs } = useScope();
  const zone = useZone();
  const page = PAGES.find((one) => one.path === path) ?? PAGES[0]!;
  useEffect(() => {
    document.title = `${page.title} · Broomwagon`;
  }, [page]);
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
            <Text fw={600} visibleFrom="xs">
              Broomwagon
            </Text>
          </Group>
          <Toolbar />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" component="nav" aria-label="Pages">
        <ScrollArea>
          {PAGES.map(({ path, title }) => (
            <NavLink
              key={path}
              href={buildHref(path)}
              label={title}
              active={path === page.path}
              aria-current={path === page.path ? 'page' : undefined}
              onClick={close}
            />
          ))}
        </ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main id="main" tabIndex={-1}>
        <Stack gap="md">
          <div>
            <Title order={1} size="h2">
              {page.title}
            </Title>
            <Text c="dimmed" size="sm">
              {page.about}
            </Text>
          </div>
          <Suspense fallback={<Loading />}>
            {page.needsJob && job === undefined ? (
              <LiveData live={jobs} what="the jobs">
                {() => <Text>There is no job yet. A trainer makes one with its first round.</Text>}
              </LiveData>
            ) : (
              <page.view key={`${pool}/${job}/${zone}`} />
            )}
          </Suspense>
        </Stack>
      </AppShell.Main>
    </AppShell>
  );
}

function focusMain(event: React.MouseEvent): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

function Loading() {
  return (
    <Center h={200}>
      <Loader aria-label="Loading" />
    </Center>
  );
}

function NoPool({ pools }: { pools: Live<unknown> }) {
  return (
    <Center h="100vh" p="md" component="main">
      <LiveData live={pools} what="the pools">
        {() => <Text role="status">There is no pool yet. This page looks again every ten seconds.</Text>}
      </LiveData>
    </Center>
  );
}
