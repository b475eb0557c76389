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
/** Bound for a very busy machine. A free one needs 5 s; the measured seconds are in the table of the run. */
const RECOVERY_BOUND_MS = 120_000;
/** Speed at which the running jobs end, once all services work again. */
const LAST_SPEED = 200;

const FAULTS: Record<string, LinkFault> = {
  'is cut': { kind: 'cut' },
  refuses: { kind: 'refuse' },
  'drops bytes to the server': { kind: 'black-hole', direction: 'out', hitsNew: true },
  'drops bytes to the service': { kind: 'black-hole', direction: 'back', hitsNew: true },
  'drops all bytes': { kind: 'black-hole', hitsNew: true },
  'delays all bytes by 100 ms': { kind: 'delay', delayMs: 100 },
  'delays bytes to the server by 3 s': { kind: 'delay', direction: 'out', delayMs: 3_000 },
  'delays bytes to the server by 15 s': { kind: 'delay', direction: 'out', delayMs: 15_000 },
  'delays bytes to the service by 3 s': { kind: 'delay', direction: 'back', delayMs: 3_000 },
  'delays bytes to the service by 15 s': { kind: 'delay', direction: 'back', delayMs: 15_000 },
};
interface Link {
  app: App;
  name: LinkName;
}
interface Row {
  links: readonly Link[];
  fault: LinkFault;
}
const ALL_LINKS = (Object.keys(LINKS) as App[]).flatMap((app) => LINKS[app].map((name): Link => ({ app, name })));
const nameRows = (subject: string, links: readonly Link[]) =>
  Object.entries(FAULTS).map(([verb, fault]): [title: string, row: Row] => [`${subject} ${verb}`, { links, fault }]);
const ROWS = [
  ...ALL_LINKS.flatMap((link) => nameRows(`${link.app}: the link to ${link.name}`, [link])),
  ...nameRows('all services: each link', ALL_LINKS),
];
/** The rows of `npm test`. */
const FEW = new Set(['worker: the link to payloads is cut', 'load-balancer: the link to nats refuses']);
/** Whether lost links are logged. Calls to engines and the API server have a connection each, and are repeated. */
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
      const { links, fault } = row;
      const logged = links.filter(({ name }) => hasLog(name));
      const count = (event: 'lost' | 'restored') => logged.map(({ app, name }) => faulty.countLines(app, name, event));
      const before = { lost: count('lost'), restored: count('restored') };
      const since = (event: 'lost' | 'restored') => count(event).map((lines, index) => lines - before[event][index]!);
      let isOver = false;
      const load = faulty.load(() => isOver);
      load.catch(() => undefined);
      await expect.poll(async () => (await faulty.system.runningRequests()).length).toBeGreaterThan(0);
      for (const { app, name } of links) faulty.link(app, name).begin(fault);
      await delay(FAULT_MS);
      for (const { app, name } of links) faulty.link(app, name).end();
      const endedAtMs = performance.now();
      try {
        await faulty.untilWorking(RECOVERY_BOUND_MS);
      } finally {
        isOver = true;
      }
      Object.assign(task.meta, { outcome: `recovered in ${((performance.now() - endedAtMs) / 1_000).toFixed(1)} s` });
      await faulty.system.setSpeed(LAST_SPEED);
      await load;
      await faulty.system.setSpeed();
      await faulty.system.expectAtRest();
      // A link may stay if bytes are delayed, or dropped for less than the timeout of silence. A closed link does not.
      await expect.poll(() => since('restored')).toEqual(since('lost'));
      const isClosed = fault.kind === 'cut' || fault.kind === 'refuse';
      for (const [index, lost] of since('lost').entries()) {
        const { app, name } = logged[index]!;
        if (isClosed) expect([app, name, lost]).toEqual([app, name, 1]);
        else expect([app, name, lost]).toEqual([app, name, expect.toBeOneOf([0, 1])]);
      }
      expect(await faulty.system.redis.findings()).toEqual([]);
    },
  );
});
