import type { Policy } from './policy';

export const roundRobin: Policy = { load: (server) => server.turn ?? 0, branch: 'round-robin' };
