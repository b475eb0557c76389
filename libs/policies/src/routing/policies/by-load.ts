import { weighed, type Policy } from './policy';

export const leastInflight: Policy = { load: (server) => weighed(server.leases, server.weight) };

export const leastSessions: Policy = { load: (server) => weighed(server.sessions ?? 0, server.weight) };

export const leastKv: Policy = { load: (server) => weighed(server.kvShare ?? 0, server.weight) };

/** Tokens of one unit of load. A lease without contextTokens counts as one unit. */
export const TOKENS_PER_LOAD = 256;

export const leastTokens: Policy = {
  load: (server) => weighed((server.tokens ?? 0) / TOKENS_PER_LOAD, server.weight),
};

export const roundRobin: Policy = { load: (server) => server.turn ?? 0, branch: 'round-robin' };
