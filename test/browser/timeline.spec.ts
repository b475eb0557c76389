import { readFileSync } from 'node:fs';
import { connectNats, type MessagingConnection } from '@broomwagon/messaging';
import { testNatsUrl } from '@broomwagon/testing';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { publishAttempts } from '../../lab/bench/src/console/publish-attempts';
import { AdminApi } from '../system/admin-api';
import { Browser, NO_BROWSER } from '../system/chromium';
import { dataSet } from '../system/data-set';
import { TestSystem } from '../system/test-system';

const PROMPTS = dataSet(24, 2);
const MANY_BARS = 10_000;

describe.skipIf(NO_BROWSER !== undefined)('the console', () => {
  let system: TestSystem;
  let api: AdminApi;
  let browser: Browser;
  let connection: MessagingConnection;

  beforeAll(async () => {
    system = await TestSystem.start({ workers: 1, engines: 2, prompts: PROMPTS });
    api = await AdminApi.start(system.keyPrefix);
    browser = await Browser.start();
    connection = await connectNats({ url: testNatsUrl() });
    await system.train('job', PROMPTS, { groupsPerStep: 4, policy: 'resume' });
  });
  afterAll(async () => {
    await connection?.close();
    await browser?.close();
    await api?.close();
    await system?.stop();
  });

  const open = (page: string, job: string): Promise<Page> =>
    browser.open(`${api.url}/#token=${api.rootToken}`).then(async (tab) => {
      await tab.getByRole('heading', { level: 1 }).waitFor();
      await tab.goto(`${api.url}/#/${page}?pool=${system.pool}&job=${job}`);
      return tab;
    });
  /** The text of a file that a button saves. */
  async function saved(page: Page, button: string): Promise<string> {
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: button, exact: true }).click(),
    ]);
    return readFileSync(await file.path(), 'latin1');
  }

  it('shows why a step is slow: reasons in words, each attempt by server and by end, and files with the data', async () => {
    const page = await open('timeline', 'job');
    const canvas = page.locator('canvas[data-bars]');
    await canvas.waitFor();
    await page.getByText(/The last tenth of the samples, \d+ % of the round: The last (\d+ )?of \d+ samples/).waitFor();
    await page.getByText(/Queues, \d+ % of the round/).waitFor();
    const exported = JSON.parse(await saved(page, 'JSON')) as {
      reasons: string[];
      hasBeginning: boolean;
      bars: { outcome: string; phases: { phase: string }[] }[];
    };
    expect(exported.reasons.length).toBeGreaterThanOrEqual(3);
    expect(exported.hasBeginning).toBe(true);
    const { rounds } = await system.call('round.list', { job: 'job' });
    const { requestsDone } = await system.call('round.status', { job: 'job', roundId: rounds[0]!.roundId });
    expect(exported.bars.filter(({ outcome }) => outcome === 'finished')).toHaveLength(requestsDone);
    expect(exported.bars.every(({ phases }) => phases.length > 0)).toBe(true);
    expect(await saved(page, 'SVG')).toMatch(/^<svg [\s\S]*<rect [\s\S]*<\/svg>\n$/);
    expect((await saved(page, 'PNG')).slice(1, 4)).toBe('PNG');

    await page.getByText('by end', { exact: true }).click();
    await expect.poll(() => canvas.getAttribute('data-bars')).toBe(String(exported.bars.length));
    // The first row is the request that ended last: somewhere in it is its bar.
    const box = (await canvas.boundingBox())!;
    const tooltip = page.getByRole('tooltip');
    for (let part = 0.98; part > 0.1 && (await tooltip.count()) === 0; part -= 0.01) {
      await page.mouse.move(box.x + part * box.width, box.y + 30);
    }
    expect(await tooltip.textContent()).toMatch(/job\/p\d+\/\d.*tokens.*decode/);
    await page.close();
  });

  it('shows the cost of the policy: steps, other policies, and files with the data', async () => {
    const page = await open('frontier', 'job');
    await page.getByText(/On \d+ recorded groups, resume 1.5 is [\d.]+ times as fast as waiting/).waitFor();
    const table = page.getByRole('region', { name: 'Steps and policies' });
    for (const name of ['resume 1.5 (own)', 'wait', 'drip 1.25', 'step 6']) {
      await table.getByText(name, { exact: name !== 'step 6' }).waitFor();
    }
    expect(await page.locator('svg[role=img] circle').count()).toBe(2 * 6);
    const exported = JSON.parse(await saved(page, 'JSON')) as { steps: object[]; whatIf: object[] };
    expect([exported.steps.length, exported.whatIf.length]).toEqual([6, 7]);
    expect(await saved(page, 'SVG')).toMatch(/^<svg [\s\S]*off-policy share[\s\S]*<\/svg>$/);
    await page.close();
  });

  it('draws ten thousand bars, and draws them again at each zoom', async () => {
    const groups = [{ groupId: 'g', samples: 1, maxTokens: 16, prompt: { text: 'Why?' } }];
    const policy = { name: 'resume' as const, overProvision: 1 };
    await system.process('worker-1').stop();
    const { roundId } = await system.openRound('many', { groupsPerStep: 1, groups, policy });
    const { rounds } = await system.call('round.list', { job: 'many' });
    const { openedAtMs } = rounds[0]!;
    await publishAttempts(connection, { pool: system.pool, job: 'many', roundId, openedAtMs }, MANY_BARS);
    const page = await open('timeline', 'many');
    const canvas = page.locator(`canvas[data-bars="${MANY_BARS}"]`);
    await canvas.waitFor();
    // The bars are at this position: a zoom there draws many of them.
    await canvas.hover({ position: { x: 180, y: 260 } });
    for (let turn = 0; turn < 20; turn++) {
      await page.mouse.wheel(0, turn < 10 ? -100 : 100);
      await page.evaluate('new Promise((settle) => requestAnimationFrame(() => requestAnimationFrame(settle)))');
    }
    expect(await page.evaluate(() => performance.getEntriesByName('timeline-redraw').length)).toBeGreaterThanOrEqual(
      20,
    );
    expect(browser.errors).toEqual([]);
    expect(browser.foreignRequests).toEqual([]);
  });
});
