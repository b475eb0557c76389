import { randomUUID } from 'node:crypto';
import type { ReplicasReadinessReply } from '@broomwagon/contracts';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AdminApi } from '../system/admin-api';
import { Browser } from '../system/chromium';
import type { TestSystem } from '../system/test-system';
import { startWithJobs } from './console-system';

let system: TestSystem;
let api: AdminApi;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  ({ system, api } = await startWithJobs());
  browser = await Browser.start();
  page = await browser.open(`${api.url}/#token=${api.rootToken}`);
});
afterAll(async () => {
  await browser?.close();
  await api?.close();
  await system?.stop();
});

const show = async (address: string, title: string) => {
  await page.goto(`${api.url}/#/${address}`);
  await page.getByRole('heading', { name: title, level: 1 }).waitFor();
};
const findRow = (text: string) => page.getByRole('row').filter({ hasText: text });

describe('the pages show the data of the API:', () => {
  it('fleet', async () => {
    await show('fleet', 'Fleet');
    for (const id of ['engine-0', 'engine-1', 'engine-2', 'engine-3']) await findRow(id).getByText('ready').waitFor();
    await page.getByText('of 4', { exact: true }).waitFor();
    await findRow('engine-1').getByText('taken', { exact: true }).waitFor();
    await reportInterval('engine-1', 1);
    await findRow('engine-1').getByText('not as asked: 1').waitFor();
    await page.getByLabel('Filter servers by id, address or model').fill('engine-2');
    await expect.poll(() => page.getByRole('row').count()).toBe(2);
    await page.getByLabel('Filter servers by id, address or model').fill('');
    await page.getByRole('button', { name: 'Server' }).click();
    await page.getByRole('button', { name: 'Server' }).click();
    await expect.poll(() => page.getByRole('row').nth(1).textContent()).toContain('engine-3');
    expect(await page.getByRole('columnheader', { name: 'Server' }).getAttribute('aria-sort')).toBe('descending');
  });

  it('reasons why replicas of services are not ready in the fleet', async () => {
    const reason = 'Redis at 10.0.0.1:6379: READONLY';
    const ofPool = /\/readiness$/;
    await page.route(ofPool, async (route) => {
      const response = await route.fetch();
      const { replicas } = (await response.json()) as ReplicasReadinessReply;
      // All replicas of the running system are ready.
      const broken = replicas.map((replica) =>
        replica.app === 'load-balancer'
          ? { ...replica, ready: false, checks: [{ check: 'redis', passes: false, reason }] }
          : replica,
      );
      await route.fulfill({ response, json: { replicas: broken } });
    });
    await page.reload();
    await show('fleet', 'Fleet');
    const problems = page.getByRole('status', { name: 'Services with problems' });
    await problems.getByText(/^load-balancer \w+ is not ready: redis: Redis at 10\.0\.0\.1:6379: READONLY$/).waitFor();
    expect(await problems.getByRole('listitem').count()).toBe(1);
    await page.unroute(ofPool);
    await problems.waitFor({ state: 'detached' });
  });

  it('round', async () => {
    await show('round?job=running', 'Round');
    await page.getByText('0 of 1 groups').waitFor();
    await page.getByText('resume, launches × 2').waitFor();
    await page.getByText(/^running 4$/).waitFor();
    await findRow('running/one/').first().waitFor();
    await page.getByText(/^End expected/).waitFor();
    await page.getByRole('img', { name: /^Samples by length in tokens.*finished, cut or running: / }).waitFor();
    await show('round?job=trained', 'Round');
    await page.getByText('8 of 8 groups').waitFor();
    await page.getByRole('img', { name: /^Samples by length in tokens/ }).waitFor();
    expect(await page.getByText(/^End expected/).count()).toBe(0);
  });

  it('what an open round waits for, in the timeline', async () => {
    await show('timeline?job=running', 'Timeline');
    const wait = page.getByRole('region', { name: /^What it waits for now: / });
    await wait.getByText('Waits for 1 of 1 groups: 4 requests run.').waitFor();
    await wait.getByText('Nothing is wrong', { exact: true }).waitFor();
    await wait.getByText(/^End expected/).waitFor();
    await wait
      .getByRole('row')
      .filter({ hasText: 'running/one/0' })
      .getByRole('link', { name: /^engine-\d$/ })
      .waitFor();
    // Samples that have finished do not explain an open round.
    expect(await page.getByText('The last tenth of the samples').count()).toBe(0);
    await system.call('pool.pause', {});
    const paused = wait.getByRole('listitem').filter({ hasText: 'The pool is paused' });
    await paused.getByRole('link', { name: 'Runbook BroomwagonNoGrants' }).waitFor();
    await system.call('pool.resume', {});
    await paused.waitFor({ state: 'detached' });
  });

  it('broken bounds of `auto` in the round', async () => {
    // Only many rounds break a bound.
    const auto = { policy: 'wait', reason: 'measured', broken: { measured: ['maxWaste'] }, groups: 64, frontier: [] };
    const ofRound = /\/jobs\/running\/rounds\/[^/?]+$/;
    await page.route(ofRound, async (route) => {
      const response = await route.fetch();
      const round = (await response.json()) as object;
      await route.fulfill({ response, json: { ...round, choice: { overProvision: 1, auto } } });
    });
    await show('round?job=running', 'Round');
    await page.getByText('auto: wait, launches × 1').waitFor();
    await page.getByText('The ledger of the job breaks maxWaste.').waitFor();
    await page.unroute(ofRound);
  });

  it('tail queue', async () => {
    await show('tail?job=cut', 'Tail queue');
    await findRow('endless').getByText('0 of 2').waitFor();
    await page.getByRole('img', { name: /^Groups by number of cuts/ }).waitFor();
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export as JSON lines' }).click();
    expect((await download).suggestedFilename()).toBe('cut-longtail.jsonl');
  });

  it('ledger', async () => {
    await show('ledger?job=trained', 'Ledger');
    for (const label of ['Bias of the length', 'Off-policy share', 'Waste', 'Seconds from the opening']) {
      await page.getByRole('img', { name: new RegExp(`^${label}`) }).waitFor();
    }
    await page.getByText('Samples trained', { exact: true }).first().waitFor();
    await page.getByRole('heading', { name: /^All \d+ jobs of the pool$/ }).waitFor();
  });

  it('events, as they happen', async () => {
    await show('events', 'Events');
    // The stream is open when an event of it is shown.
    await expect
      .poll(
        async () => {
          await system.call('server.fence', {
            serverId: 'engine-3',
            epoch: await readEpoch('engine-3'),
            reason: 'by the test',
          });
          return findRow('server.fenced').count();
        },
        { interval: 1_000 },
      )
      .toBeGreaterThan(0);
    await page.getByLabel('Filter events by text').fill('no such text');
    await expect.poll(() => findRow('server.fenced').count()).toBe(0);
    await page.getByLabel('Filter events by text').fill('');
    await page.getByText('server', { exact: true }).click();
    await expect.poll(() => findRow('server.fenced').count()).toBe(0);
  });

  it('decisions with their receipts', async () => {
    await show('decisions', 'Decisions');
    await page.getByRole('button', { name: 'Show' }).first().click();
    await page.getByRole('dialog').getByText('was chosen by the rule').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  it('without an error or a request to another host', () => {
    expect(browser.errors).toEqual([]);
    expect(browser.foreignRequests).toEqual([]);
  });
});

describe('everybody can use the console:', () => {
  it('in dark colors, by the system and by the switch', async () => {
    const dark = await Browser.start({ colorScheme: 'dark' });
    try {
      const other = await dark.open(`${api.url}/#token=${api.rootToken}`);
      const readScheme = () => other.locator('html').getAttribute('data-mantine-color-scheme');
      await other.getByRole('button', { name: 'Use light colors' }).waitFor();
      expect(await readScheme()).toBe('dark');
      await other.getByRole('button', { name: 'Use light colors' }).click();
      await expect.poll(readScheme).toBe('light');
    } finally {
      await dark.close();
    }
  });

  it('by form, and a wrong token is refused with the reason', async () => {
    await show('fleet', 'Fleet');
    await page.getByRole('button', { name: /role admin/ }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByLabel('Token', { exact: true }).fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText(/^UNAUTHENTICATED/).waitFor();
    await page.getByLabel('Token', { exact: true }).fill(api.rootToken);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await findRow('engine-0').waitFor();
  });
});

/** Reports mean tokens of an event of a server, as a worker does. */
async function reportInterval(serverId: string, observedStreamInterval: number): Promise<void> {
  const workerId = 'observer';
  const { workerEpoch } = await system.call('worker.register', { workerId, registrationId: randomUUID() });
  const signs = { serverId, epoch: await readEpoch(serverId), tokens: 1, silentMs: 0, observedStreamInterval };
  const counts = { leaseCount: 0, leaseDigest: 0, attemptCount: 0 };
  await system.call('worker.heartbeat', { workerId, workerEpoch, ...counts, servers: [signs] });
  await system.call('worker.deregister', { workerId, workerEpoch });
}

async function readEpoch(serverId: string) {
  return (await system.call('server.get', { serverId })).epoch;
}
