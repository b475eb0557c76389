import { weighed, type Policy } from './policy';

export const leastInflight: Policy = { load: (server) => weighed(server.leases, server.weight) };
