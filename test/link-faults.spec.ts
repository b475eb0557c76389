import { setTimeout as delay } from 'node:timers/promises';
import type { LinkFault } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type App, FaultySystem, type LinkName, LINKS } from './system/faulty-system';

/** `npm run test:faults` sets the factor, and takes every row. */
const TAKES_ALL = process.env.TEST_RUNS_FACTOR !== undefined;
/** How long each fault lasts, milliseconds; up to ten minutes by hand. */
const FAULT_MS = Number(process.env.LINK_FAULT_MS ?? 1_000);
/** Jobs of a long fault take longer, which costs less CPU: many of them run side by side. */
const SPEED = FAULT_MS < 30_000 ? 20 : 4;
/** Bound for a very busy machine; 5 s is what a free one needs, and the measured seconds are in the table of the run. */
const RECOVERY_BOUND_MS = 120_000;

const FAULTS: Record<string, LinkFault> = {
  'is cut': { kind: 'cut' },
  refuses: { kind: 'refuse' },
  'drops bytes to the server': { kind: 'black-hole', direction: 'out', hitsNew: true },
  'drops bytes to the service': { kind: 'black-hole', direction: 'back', hitsNew: true },
  'drops all bytes': { kind: 'black-hole', hitsNew: true },
  'delays all bytes by 100 ms': { kind: 'delay', delayMs: 100 },
  'delays bytes to the server by 3 s': { kind: 'delay', direction: 'out', delayMs: 3_000 },
  'delays bytes to the service by 15 s': { kind: 'delay', direction: 'back', delayMs: 15_000 },
};
interface Row {
  app: App;
  name: LinkName;
  fault: LinkFault;
}
const ROWS = (Object.keys(LINKS) as App[]).flatMap((app) =>
  LINKS[app].flatMap((name) =>
    Object.entries(FAULTS).map(([verb, fault]): [title: string, row: Row] => [
      `${app}: the link to ${name} ${verb}`,
      { app, name, fault },
    ]),
  ),
);
/** The rows of `npm test`. */
const FEW = new Set(['worker: the link to payloads is cut', 'load-balancer: the link to nats refuses']);
/** Each call to an engine or to the API server has a connection of its own: no link is lost, and its calls are repeated. */
const hasLog = (name: LinkName) => name !== 'engine' && name !== 'kubernetes';

describe(`under load, for ${FAULT_MS} ms`, () => {
  let faulty: FaultySystem;
  beforeAll(async () => {
    faulty = await FaultySystem.start(SPEED);
  });
  afterAll(() => faulty?.stop());

  it.for(ROWS.filter(([title]) => TAKES_ALL || FEW.has(title)))(
    '%s',
    { timeout: 1_800_000 },
    async ([, row], { task }) => {
      const { app, name, fault } = row;
      const link = faulty.link(app, name);
      const count = (event: 'lost' | 'restored') => (hasLog(name) ? faulty.countLines(app, name, event) : 0);
      const before = { lost: count('lost'), restored: count('restored') };
      let isOver = false;
      const load = faulty.load(() => isOver);
      load.catch(() => undefined);
      await expect.poll(async () => (await faulty.system.runningRequests()).length).toBeGreaterThan(0);
      link.begin(fault);
      await delay(FAULT_MS);
      link.end();
      const endedAtMs = performance.now();
      try {
        await faulty.untilWorking(RECOVERY_BOUND_MS);
      } finally {
        isOver = true;
      }
      Object.assign(task.meta, { outcome: `recovered in ${((performance.now() - endedAtMs) / 1_000).toFixed(1)} s` });
      await load;
      await faulty.system.expectAtRest();
      // A link that is delayed, or drops bytes for less than its silence, may stay; one that was closed does not.
      await expect.poll(() => count('restored') - before.restored).toBe(count('lost') - before.lost);
      const lost = count('lost') - before.lost;
      if (hasLog(name) && (fault.kind === 'cut' || fault.kind === 'refuse')) expect(lost).toBe(1);
      else expect(lost).toBeLessThanOrEqual(hasLog(name) ? 1 : 0);
      expect(await faulty.system.redis.findings()).toEqual([]);
    },
  );
});
