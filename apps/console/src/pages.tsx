import { type ComponentType, lazy, type LazyExoticComponent } from 'react';

/** One page of the console. */
export interface Page {
  /** In the address: `#/<path>`. */
  path: string;
  title: string;
  /** What the page answers, as one sentence. */
  about: string;
  view: LazyExoticComponent<ComponentType>;
}

/** All pages, in the order of the navigation. A new page is an entry here and a file in `pages/`. */
export const PAGES: readonly Page[] = [
  {
    path: 'fleet',
    title: 'Fleet',
    about: 'Servers with their load, state and weights.',
    view: lazy(() => import('./pages/fleet/fleet-page')),
  },
];
