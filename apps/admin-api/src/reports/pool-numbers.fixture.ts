import { readFileSync } from 'node:fs';
import type { ReadinessReply, ServerStatus } from '@broomwagon/contracts';
import type { PoolNumbers } from './overview-alarms';

export const RUNBOOKS = readFileSync('docs/operations/alerts.md', 'utf8');

export const replica = (app: string, more: Partial<ReadinessReply> = {}): ReadinessReply => ({
  app,
  replicaId: 'one',
  version: '1',
  ready: true,
  checks: [],
  ...more,
});
export const server = (serverId: string, more: Partial<ServerStatus> = {}) =>
  ({ serverId, state: 'ready', heartbeatAgeMs: 100, inflight: 0, capacity: 8, ...more }) as ServerStatus;

export const SERVICES = [replica('load-balancer'), replica('trainer-coordinator')];
/** A pool of which nothing is wrong, without rounds. */
export const FINE: PoolNumbers = {
  pool: 'p',
  atMs: 100_000,
  unread: [],
  services: SERVICES,
  redis: { usedBytes: 1, maxBytes: 100 },
  paused: false,
  workers: 1,
};
