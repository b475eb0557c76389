import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Logger } from '@nestjs/common';
import { EngineAccess, toServerId } from '@broomwagon/engines';
import { Alarms, Metrics } from '@broomwagon/platform';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { openTestStore, type TestStore } from '../../../../libs/state/src/routing/routing-store.fixture';
import { LoadBalancerConfig } from '../load-balancer.config';
import { DiscoveryService } from './discovery.service';
import type { FoundEngine } from './engine-source';
import type { EngineSources } from './engine-sources';
import type { ServersService } from './servers.service';

Logger.overrideLogger(false);

const MODELS = JSON.stringify({ object: 'list', data: [{ id: 'tiny', object: 'model' }] });
const ENGINES = 4;

/** Lists that change, and report their changes as a watch does. */
class ChangingList {
  private list: FoundEngine[] = [];
  private report: () => void = () => undefined;

  engines(): Promise<FoundEngine[]> {
    return Promise.resolve(this.list);
  }

  whenChanged(listener: () => void): void {
    this.report = listener;
  }

  change(list: FoundEngine[]): void {
    this.list = list;
    this.report();
  }
}

describe('servers of lists that change', () => {
  const engines: Server[] = [];
  let urls: string[];
  let test: TestStore;
  let list: ChangingList;
  let discovery: DiscoveryService;
  beforeAll(async () => {
    for (let index = 0; index < ENGINES; index++) {
      const engine = createServer(({ url }, response) => {
        response.writeHead(url === '/v1/models' ? 200 : 404, { 'content-type': 'application/json' }).end(MODELS);
      });
      await new Promise<void>((resolve) => engine.listen(0, '127.0.0.1', resolve));
      engines.push(engine);
    }
    urls = engines.map((engine) => `http://127.0.0.1:${(engine.address() as AddressInfo).port}`);
    test = openTestStore();
    list = new ChangingList();
    const { servers: store } = test;
    const servers: Pick<ServersService, 'register' | 'drain' | 'withhold'> = {
      register: (pool, request, listedAs) =>
        store.register(pool, { ...request, discovered: true, listedAs, weight: 1, lacks: '' }),
      drain: (pool, request, listedAs) => store.drain(pool, { ...request, listedAs }),
      withhold: (pool, server) => store.withhold(pool, { ...server, withheld: true }),
    };
    discovery = new DiscoveryService(
      servers as ServersService,
      store,
      Object.assign(new LoadBalancerConfig(), { enginePool: test.pool }),
      { all: [list] } as EngineSources,
      new EngineAccess(),
      new Alarms(new Metrics('test')),
    );
  });
  afterAll(async () => {
    await discovery?.onModuleDestroy();
    for (const engine of engines) engine.close();
    await test?.close();
  });

  const discover = () => discovery.discoverAll(new AbortController().signal);
  /** Engines whose servers can get leases, as `<server id> <identity>`. */
  async function usable(): Promise<string[]> {
    const { servers } = await test.servers.list(test.pool);
    return servers.flatMap(({ serverId, listedAs, withheld, drainUntilMs }) =>
      withheld || drainUntilMs !== undefined ? [] : [`${serverId} ${listedAs}`],
    );
  }
  const listedReady = (found: readonly FoundEngine[]): string[] =>
    found.filter(isReady).map(({ url, identity }) => `${toServerId(url)} ${identity}`);
  const isReady = ({ isNotReady, drainMs }: FoundEngine): boolean => !isNotReady && drainMs === undefined;

  const engine = fc
    .record({
      place: fc.nat(ENGINES - 1),
      identity: fc.constantFrom('pod-1', 'pod-2', 'pod-3'),
      state: fc.constantFrom<Partial<FoundEngine>>({}, {}, { isNotReady: true }, { drainMs: 60_000 }),
    })
    .map(({ place, identity, state }) => ({ place, identity, ...state }));
  const step = fc.record({
    listed: fc.uniqueArray(engine, { selector: ({ place }) => place }),
    /** A run of an older list is still asking engines when the list changes. */
    overlaps: fc.boolean(),
  });

  it('get leases only while their engines are listed as ready, from the report of the change on', async () => {
    const worker = await test.worker('w');
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
        for (const { listed, overlaps } of steps) {
          const found = listed.map(({ place, ...fields }): FoundEngine => ({ url: urls[place]!, ...fields }));
          const running = overlaps ? discover() : Promise.resolve();
          list.change(found);
          await running;
          const ready = listedReady(found);
          await expect.poll(async () => (await usable()).filter((one) => !ready.includes(one))).toEqual([]);
          await discover();
          expect((await usable()).sort()).toEqual(ready.sort());
          for (let lease = 0; lease < ENGINES; lease++) {
            const { serverId, acquireId, seq } = await test.acquire(worker);
            if (ready.length === 0) expect(serverId).toBeUndefined();
            else expect(ready.map((one) => one.split(' ')[0])).toContain(serverId);
            if (serverId !== undefined && lease % 2 === 0) await test.release(acquireId, seq);
          }
        }
      }),
      { seed: inject('seed'), numRuns: 4 * inject('runsFactor') },
    );
  });
});
