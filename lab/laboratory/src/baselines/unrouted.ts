import type { Router } from '../routing/router';

/** Placeholder for no router: the dispatcher itself chooses servers. */
export const unrouted: Router = {
  name: 'none',
  choose: () => undefined,
  released: () => undefined,
  moved: () => undefined,
};
