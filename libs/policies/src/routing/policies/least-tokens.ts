import { weighed, type Policy } from './policy';

/** Tokens of one unit of load; a lease without contextTokens counts as many. */
export const TOKENS_PER_LOAD = 256;

export const leastTokens: Policy = {
  load: (server) => weighed((server.tokens ?? 0) / TOKENS_PER_LOAD, server.weight),
};
