import { weighed, type Policy } from './policy';

/** One unit of load; also what a lease without contextTokens counts. */
export const TOKENS_PER_LOAD = 256;

export const leastTokens: Policy = {
  load: (server) => weighed((server.tokens ?? 0) / TOKENS_PER_LOAD, server.weight),
};
