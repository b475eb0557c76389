import axe, { type AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AdminApi } from '../system/admin-api';
import { Browser } from '../system/chromium';
import type { TestSystem } from '../system/test-system';
import { CONTENTS, startWithJobs } from './console-system';

/** A keyboard reaches everything of a page with fewer steps. */
const MAX_TABS = 100;
let system: TestSystem;
let api: AdminApi;

beforeAll(async () => {
  ({ system, api } = await startWithJobs());
});
afterAll(async () => {
  await api?.close();
  await system?.stop();
});

/** The serious violations that axe finds: rule, element, and how to mend it. */
async function findViolations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<AxeResults>('axe.run()');
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html}: ${failureSummary}`));
}

describe.each(['light', 'dark'] as const)('the console in %s colors', (colorScheme) => {
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    browser = await Browser.start({ colorScheme });
    page = await browser.open(`${api.url}/#token=${api.rootToken}`);
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
  });
  afterAll(() => browser?.close());

  it('has no serious violation of axe before the sign-in', async () => {
    // Tokens are kept for a tab, so another one is signed out.
    const signedOut = await browser.open(api.url);
    await signedOut.getByRole('button', { name: 'Sign in' }).waitFor();
    expect(await findViolations(signedOut)).toEqual([]);
    await signedOut.close();
  });

  it('has no serious violation of axe on any page', async () => {
    const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
    const addresses = await links.evaluateAll((found) => found.map((link) => link.getAttribute('href')!));
    const paths = addresses.map((address) => /#\/([\w-]+)/.exec(address)![1]!);
    expect(paths).toEqual(Object.keys(CONTENTS));
    const violations: Record<string, string[]> = {};
    for (const [path, { job, shown }] of Object.entries(CONTENTS)) {
      await page.goto(`${api.url}/#/${path}?job=${job}`);
      await page.locator(shown).first().waitFor();
      violations[path] = await findViolations(page);
    }
    expect(violations).toEqual(Object.fromEntries(paths.map((path) => [path, []])));
  });

  it('has no serious violation of axe in the dialog of an action', async () => {
    await page.goto(`${api.url}/#/fleet`);
    await page.getByRole('button', { name: 'Drain' }).first().click();
    await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).waitFor();
    // The dialog fades in: until the animation ends, its colors are mixed with the colors behind it.
    await page.locator('[data-effect]').waitFor();
    await page.evaluate('Promise.all(document.getAnimations().map((one) => one.finished))');
    expect(await findViolations(page)).toEqual([]);
  });
});

describe('an operator with a keyboard alone', () => {
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    browser = await Browser.start();
    page = await browser.open(`${api.url}/#/fleet?token=${api.rootToken}`);
    await page.getByRole('row').filter({ hasText: 'engine-0' }).waitFor();
  });
  afterAll(() => browser?.close());

  const focused = () => page.locator(':focus');
  /** Presses Tab until this element of the page has the focus. */
  const tabTo = async (row: string, name: string) => {
    const element = page.getByRole('row').filter({ hasText: row }).getByRole('button', { name, exact: true });
    const isFocused = () => element.evaluate((found) => found.matches(':focus'));
    for (let tabs = 0; !(await isFocused()); tabs++) {
      expect(tabs).toBeLessThan(MAX_TABS);
      await page.keyboard.press('Tab');
    }
  };
  const readState = async (serverId: string) => (await system.call('server.get', { serverId })).state;

  it('skips the navigation', async () => {
    await page.keyboard.press('Tab');
    expect(await focused().textContent()).toBe('Skip to the page');
    await page.keyboard.press('Enter');
    expect(await focused().getAttribute('id')).toBe('main');
  });

  it('leaves a dialog without a change, and has the focus where it was', async () => {
    await tabTo('engine-0', 'Drain');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog', { name: 'Drain engine-0?' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('row').filter({ hasText: 'engine-0' }).locator('button:focus').waitFor();
    expect(await readState('engine-0')).toBe('ready');
  });

  it('drains a server with a confirmation, and undrains it', async () => {
    const { requests } = await system.call('request.list', { job: 'running', state: 'running' });
    // Without requests a drained server would be removed at once.
    const serverId = requests.find((one) => one.serverId !== undefined)!.serverId!;
    for (const [name, state] of [
      ['Drain', 'draining'],
      ['Undrain', 'ready'],
    ] as const) {
      await tabTo(serverId, name);
      await page.keyboard.press('Enter');
      await page.getByRole('dialog', { name: `${name} ${serverId}?` }).waitFor();
      // A dangerous change begins at Cancel, and its button is the next one.
      if (name === 'Drain') {
        await expect.poll(() => focused().textContent()).toBe('Cancel');
        await page.keyboard.press('Tab');
      }
      await expect.poll(() => focused().textContent()).toBe(name);
      await page.keyboard.press('Enter');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await expect.poll(() => readState(serverId)).toBe(state);
    }
  });
});
