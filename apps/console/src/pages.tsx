import type { Schemas } from '@broomwagon/admin-client';
import { type ComponentType, lazy, type LazyExoticComponent } from 'react';

export type Role = Schemas['IdentityReply']['role'];

export interface Page {
  /** Path in the address: `#/<path>`. */
  path: string;
  title: string;
  /** One sentence with the question that the page answers. */
  about: string;
  /** The page is about one job, so it is shown only when there is a job. */
  needsJob?: true;
  /** Lowest role that may read the data of the page; default: viewer. */
  role?: Role;
  view: LazyExoticComponent<ComponentType>;
}

/** Pause before the code of a page is loaded again, milliseconds. */
const RETRY_MS = 2_000;

/** A page whose code is loaded when it is shown, again and again until the server answers. */
function view(load: () => Promise<{ default: ComponentType }>): Page['view'] {
  const loadAgain = async (): Promise<{ default: ComponentType }> => {
    try {
      return await load();
    } catch {
      await new Promise((settle) => setTimeout(settle, RETRY_MS));
      return loadAgain();
    }
  };
  return lazy(loadAgain);
}

/** All pages, in the order of the navigation. A new page is an entry here and a file in `pages/`. */
export const PAGES: readonly Page[] = [
  {
    path: 'overview',
    title: 'Overview',
    about: 'Is anything wrong, and what do I do?',
    view: view(() => import('./pages/overview/overview-page')),
  },
  {
    path: 'fleet',
    title: 'Fleet',
    about: 'Servers with their load, state and weights.',
    view: view(() => import('./pages/fleet/fleet-page')),
  },
  {
    path: 'round',
    title: 'Round',
    about: 'How far the running round is, when it ends, and what its requests do.',
    needsJob: true,
    view: view(() => import('./pages/round/round-page')),
  },
  {
    path: 'tail',
    title: 'Tail queue',
    about: 'Groups that were cut and wait for a later round.',
    needsJob: true,
    view: view(() => import('./pages/tail/tail-page')),
  },
  {
    path: 'ledger',
    title: 'Ledger',
    about: 'What the tail policy costs and gains, step by step.',
    needsJob: true,
    view: view(() => import('./pages/ledger/ledger-page')),
  },
  {
    path: 'timeline',
    title: 'Timeline',
    about: 'Why is this step slow? Each attempt of a round, by server or by its end.',
    needsJob: true,
    view: view(() => import('./pages/timeline/timeline-page')),
  },
  {
    path: 'frontier',
    title: 'Frontier',
    about: 'What did this policy cost me? Speed and cost of the steps, and of other policies on the same samples.',
    needsJob: true,
    view: view(() => import('./pages/frontier/frontier-page')),
  },
  {
    path: 'events',
    title: 'Events',
    about: 'What happens in the pool, as it happens.',
    view: view(() => import('./pages/events/events-page')),
  },
  {
    path: 'decisions',
    title: 'Decisions',
    about: 'Why each request went to its server.',
    view: view(() => import('./pages/decisions/decisions-page')),
  },
  {
    path: 'rebalance',
    title: 'Rebalance',
    about: 'Moves of running requests to other servers.',
    view: view(() => import('./pages/rebalance/rebalance-page')),
  },
  {
    path: 'changes',
    title: 'Changes',
    about: 'Settings of the pool with their earlier versions, and changes that may be lost.',
    role: 'operator',
    view: view(() => import('./pages/changes/changes-page')),
  },
  {
    path: 'audit',
    title: 'Audit log',
    about: 'Who has changed what, or was refused.',
    role: 'operator',
    view: view(() => import('./pages/audit/audit-page')),
  },
  {
    path: 'tokens',
    title: 'Tokens',
    about: 'Who may use the REST API and the gateway.',
    role: 'admin',
    view: view(() => import('./pages/tokens/tokens-page')),
  },
  {
    path: 'runbooks',
    title: 'Runbooks',
    about: 'What to do about each alarm.',
    view: view(() => import('./pages/runbooks/runbooks-page')),
  },
];
