import { weighed, type Policy } from './policy';

export const leastSessions: Policy = { load: (server) => weighed(server.sessions ?? 0, server.weight) };
