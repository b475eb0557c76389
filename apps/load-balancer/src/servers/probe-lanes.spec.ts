import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { TestEngineHealth } from '../engine.fixture';
import type { PoolEngine } from './engine-health';
import { ProbeLanes, type ProbedServer } from './probe-lanes';

/**
 * Engines that answer at once. The call of an engine in `hang` ends when the test ends it, or without an answer at its
 * timeout.
 */
class ScriptedEngines extends TestEngineHealth {
  asked: string[] = [];
  readonly hanging = new Map<string, (answered: boolean) => void>();
  readonly hang = new Set<string>();
  most = 0;

  override answers({ endpoint }: PoolEngine, timeoutMs: number): Promise<boolean> {
    this.asked.push(endpoint);
    if (!this.hang.has(endpoint)) return Promise.resolve(true);
    return new Promise((resolve) => {
      const end = (answered: boolean) => {
        this.hanging.delete(endpoint);
        resolve(answered);
      };
      this.hanging.set(endpoint, end);
      this.most = Math.max(this.most, this.hanging.size);
      setTimeout(end, timeoutMs, false);
    });
  }
}

const names = (servers: ProbedServer[]) => servers.map(({ serverId }) => serverId);

function open(slowMs = 60_000) {
  const engines = new ScriptedEngines();
  const late: string[] = [];
  const lanes = new ProbeLanes(engines, { fastMs: 20, slowMs }, (pool, { serverId }) =>
    late.push(`${pool} ${serverId}`),
  );
  const servers = (name: string, count: number): ProbedServer[] =>
    Array.from({ length: count }, (_, n) => ({
      serverId: `${name}${n}`,
      epoch: 'e1',
      endpoint: `${name}${n}`,
      dialect: 'vllm',
    }));
  return { engines, lanes, late, servers };
}

it('probes hanging servers apart from the others, once at a time, and within a bound', async () => {
  const { engines, lanes, late, servers } = open();
  const well = servers('well', 300);
  const hung = servers('hung', 700);
  for (const { endpoint } of hung) engines.hang.add(endpoint);
  const all = [...hung, ...well];
  // In the first round the lanes know no server: each hanging server holds a place, and all others answer nevertheless.
  await lanes.ask('p', all);
  expect(engines.asked).toHaveLength(1_000);
  await expect.poll(() => engines.hanging.size).toBe(0);
  for (let round = 0; round < 3; round++) {
    engines.asked = [];
    await lanes.ask('p', all);
    expect(engines.asked.filter((name) => name.startsWith('hung'))).toEqual([]);
    lanes.askSlow('p', all);
    // Each other server is asked. A server that was slow while this process stalled is asked in the slow lane.
    expect(new Set(engines.asked.filter((name) => name.startsWith('well')))).toEqual(new Set(names(well)));
    expect(engines.hanging.size).toBe(512);
    await nextTurn();
  }
  await expect.poll(() => late.filter((name) => name.includes('hung'))).toEqual([]);
  // A late answer is recorded, and its place goes to the server that has waited longest.
  engines.hang.delete('hung7');
  engines.hanging.get('hung7')!(true);
  await expect.poll(() => late).toContain('p hung7');
  lanes.askSlow('p', all);
  expect(engines.hanging.size).toBe(512);
  expect(engines.most).toBe(512);
  for (const end of engines.hanging.values()) end(false);
});

it('takes a server back into the fast lane when it answers promptly again, and forgets a removed server', async () => {
  const { engines, lanes, late, servers } = open();
  const [one, gone] = servers('s', 2);
  for (const { endpoint } of [one!, gone!]) engines.hang.add(endpoint);
  expect(await lanes.ask('p', [one!, gone!])).toEqual([]);
  await expect.poll(() => engines.hanging.size).toBe(0);
  engines.hang.clear();
  engines.asked = [];
  lanes.askSlow('p', [one!]);
  await expect.poll(() => late).toEqual(['p s0']);
  expect(engines.asked).toEqual(['s0']);
  expect(await lanes.ask('p', [one!])).toEqual([one]);
});

it('reports each answer once: to a caller that still waits, or as late', async () => {
  const { engines, lanes, late, servers } = open();
  const [server] = servers('s', 1);
  engines.hang.add('s0');
  const answers = lanes.answers('p', server!, 1_000);
  engines.hanging.get('s0')!(true);
  expect(await answers).toBe(true);
  const early = lanes.answers('p', server!, 1);
  expect(await early).toBe(false);
  engines.hanging.get('s0')?.(true);
  expect(late.length).toBeLessThanOrEqual(1);
});
