import type { ServerStatus } from '@broomwagon/contracts';
import type { RunningRequest } from '@broomwagon/state';
import { expect, it } from 'vitest';
import { fleetSnapshots } from './fleet-snapshot';
import { REBALANCE_DEFAULTS } from './rebalance-settings';

const server = (waiting: number, ageMs = 0) =>
  ({
    serverId: 's',
    epoch: 'e1',
    state: 'ready',
    capacity: 64,
    weightVersion: 0,
    load: { running: 4, waiting, ageMs },
  }) as ServerStatus;
function request(name: string, ageMs: number, parts: Partial<RunningRequest> = {}): RunningRequest {
  return {
    leaseId: `1.${name}`,
    requestId: `job/${name}`,
    serverId: 's',
    epoch: 'e1',
    attempt: '1-a',
    contextTokens: 100,
    heldTokens: 0,
    madeTokens: 1_000,
    maxTokens: 8_000,
    longestTokens: 0,
    samples: 2,
    moves: 0,
    ageMs,
    waits: false,
    ...parts,
  };
}
function buildRequests(load: ServerStatus, running: RunningRequest[]) {
  const [snapshot] = fleetSnapshots({ servers: [load], running, others: [] }, REBALANCE_DEFAULTS);
  return Object.fromEntries(snapshot!.servers[0]!.requests.map(({ requestId, ...one }) => [requestId.slice(4), one]));
}
const phases = (load: ServerStatus, running: RunningRequest[]) =>
  Object.entries(buildRequests(load, running)).map(([name, { phase }]) => `${name} ${phase}`);

it('takes silent requests for waiting, not the latest requests', () => {
  const fleet = [
    request('g/0', 9_000, { waits: true }),
    request('g/1', 8_000, { waits: true, madeTokens: 0 }),
    request('g/2', 7_000),
    request('g/3', 1_000),
  ];
  expect(phases(server(2), fleet)).toEqual(['g/0 preempted', 'g/1 waiting', 'g/2 running', 'g/3 running']);
  // If an engine reports fewer waiting requests, a silent one waits for its prefill; an old report is ignored.
  expect(phases(server(1), fleet)).toEqual(['g/0 running', 'g/1 waiting', 'g/2 running', 'g/3 running']);
  expect(phases(server(0), fleet)).not.toContain('g/1 waiting');
  expect(phases(server(0, 60_000), fleet)).toContain('g/1 waiting');
});

it('takes the latest requests without tokens for waiting too, up to the number that the engine reports', () => {
  const fleet = [
    request('g/0', 9_000, { madeTokens: 0 }),
    request('g/1', 2_000, { madeTokens: 0 }),
    request('g/2', 1_000, { madeTokens: 0 }),
    request('g/3', 500),
  ];
  expect(phases(server(2), fleet)).toEqual(['g/0 running', 'g/1 waiting', 'g/2 waiting', 'g/3 running']);
  expect(phases(server(9), fleet).filter((one) => one.endsWith('waiting'))).toHaveLength(3);
});

it('estimates the remaining tokens of a sample from the memory and from unfinished siblings on all servers', () => {
  const elsewhere = request('g/1', 100, { serverId: 'other', madeTokens: 3_000 });
  expect(buildRequests(server(0), [request('g/0', 100), elsewhere])['g/0']).toMatchObject({ remainingTokens: 5_000 });
  const remembered = request('g/0', 100, {
    known: { samples: 3, meanLog: Math.log(4_500), deviationLog: 0, capShare: 0 },
  });
  expect(buildRequests(server(0), [remembered, elsewhere])['g/0']).toMatchObject({ remainingTokens: 3_500 });
});
