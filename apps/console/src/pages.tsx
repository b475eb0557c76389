import { type ComponentType, lazy, type LazyExoticComponent } from 'react';

export interface Page {
  /** Path in the address: `#/<path>`. */
  path: string;
  title: string;
  /** One sentence with the question that the page answers. */
  about: string;
  /** The page is about one job, so it is shown only when there is a job. */
  needsJob?: true;
  view: LazyExoticComponent<ComponentType>;
}

/** All pages, in the order of the navigation. A new page is an entry here and a file in `pages/`. */
export const PAGES: readonly Page[] = [
  {
    path: 'overview',
    title: 'Overview',
    about: 'Is anything wrong, and what do I do?',
    view: lazy(() => import('./pages/overview/overview-page')),
  },
  {
    path: 'fleet',
    title: 'Fleet',
    about: 'Servers with their load, state and weights.',
    view: lazy(() => import('./pages/fleet/fleet-page')),
  },
  {
    path: 'round',
    title: 'Round',
    about: 'How far the running round is, when it ends, and what its requests do.',
    needsJob: true,
    view: lazy(() => import('./pages/round/round-page')),
  },
  {
    path: 'tail',
    title: 'Tail queue',
    about: 'Groups that were cut and wait for a later round.',
    needsJob: true,
    view: lazy(() => import('./pages/tail/tail-page')),
  },
  {
    path: 'ledger',
    title: 'Ledger',
    about: 'What the tail policy costs and gains, step by step.',
    needsJob: true,
    view: lazy(() => import('./pages/ledger/ledger-page')),
  },
  {
    path: 'timeline',
    title: 'Timeline',
    about: 'Why is this step slow? Each attempt of a round, by server or by its end.',
    needsJob: true,
    view: lazy(() => import('./pages/timeline/timeline-page')),
  },
  {
    path: 'frontier',
    title: 'Frontier',
    about: 'What did this policy cost me? Speed and cost of the steps, and of other policies on the same samples.',
    needsJob: true,
    view: lazy(() => import('./pages/frontier/frontier-page')),
  },
  {
    path: 'events',
    title: 'Events',
    about: 'What happens in the pool, as it happens.',
    view: lazy(() => import('./pages/events/events-page')),
  },
  {
    path: 'decisions',
    title: 'Decisions',
    about: 'Why each request went to its server.',
    view: lazy(() => import('./pages/decisions/decisions-page')),
  },
  {
    path: 'rebalance',
    title: 'Rebalance',
    about: 'Moves of running requests to other servers.',
    view: lazy(() => import('./pages/rebalance/rebalance-page')),
  },
  {
    path: 'runbooks',
    title: 'Runbooks',
    about: 'What to do about each alarm.',
    view: lazy(() => import('./pages/runbooks/runbooks-page')),
  },
];
