import type { Page, Route } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AdminApi } from '../system/admin-api';
import { Browser } from '../system/chromium';
import type { TestSystem } from '../system/test-system';
import { CONTENTS, startWithJobs } from './console-system';

const REASON = 'Redis at 10.0.0.1:6379: connect ECONNREFUSED';
/** All pages that show live data. */
const PAGES = Object.entries(CONTENTS).flatMap(([path, contents]) =>
  path === 'runbooks' ? [] : [{ path, ...contents }],
);
/** What an on-call engineer reads when a part does not answer. */
const PARTS = {
  unavailable: 'admin-api answers, but a part behind it does not.',
  'no server': 'admin-api does not answer: it is down, or the network to it is.',
};
let system: TestSystem;
let api: AdminApi;
let browser: Browser;

beforeAll(async () => {
  ({ system, api } = await startWithJobs());
  browser = await Browser.start();
});
afterAll(async () => {
  await browser?.close();
  await api?.close();
  await system?.stop();
});

/** Answers every request with this problem. */
const answer = (status: number, code: string, detail: string) => (route: Route) =>
  route.fulfill({
    status,
    contentType: 'application/problem+json',
    body: JSON.stringify({ type: 'urn', title: code, status, detail, instance: 'id', code, retryable: status === 503 }),
  });
const OUTAGES = {
  unavailable: answer(503, 'UNAVAILABLE', REASON),
  'no server': (route: Route) => route.abort('connectionrefused'),
};
/** Longest interval of reads of a page, milliseconds. */
const SELDOM_MS = 130_000;
const DATA = /\/api\/v1\/(pools|tokens|audit-log)/;

describe.each(PAGES)('the page $path', ({ path, job, shown }) => {
  let page: Page;
  const address = () => `${api.url}/#/${path}?pool=${system.pool}&job=${job}`;
  const failed = () => page.locator('[data-live=failed]').first();

  beforeEach(async ({ onTestFinished }) => {
    page = await browser.open(`${api.url}/#token=${api.rootToken}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    onTestFinished(() => page.close());
  });

  it.each(['unavailable', 'no server'] as const)(
    'names the part that is down and shows no number, and recovers: %s',
    async (outage) => {
      await page.route(DATA, OUTAGES[outage]);
      await page.goto(address());
      await page.reload();
      await failed().getByText(PARTS[outage]).waitFor();
      await failed()
        .getByText(/since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d /)
        .waitFor();
      if (outage === 'unavailable') await failed().getByText(REASON).waitFor();
      expect(await page.locator('main dl').count()).toBe(0);
      expect(await page.getByText('There is no job yet').count()).toBe(0);
      await page.unroute(DATA);
      await page.locator(shown).first().waitFor();
      await failed().waitFor({ state: 'detached' });
    },
  );

  it('keeps its values with their age while admin-api answers 503, and recovers', async () => {
    await page.clock.install();
    await page.goto(address());
    await page.locator(shown).first().waitFor();
    await page.route(DATA, OUTAGES.unavailable);
    // New events come by one open stream.
    const note = page.locator(path === 'events' ? '[data-live=failed]' : '[data-live=stale]').first();
    if (path === 'events') await page.reload();
    // Some pages are read seldom.
    await page.clock.fastForward(SELDOM_MS);
    await note
      .getByText(REASON)
      .or(note.filter({ hasText: REASON }))
      .first()
      .waitFor();
    await page.unroute(DATA);
    await note.waitFor({ state: 'detached' });
    await page.locator(shown).first().waitFor();
  });

  it('says that there is no answer yet, then that admin-api hangs, and recovers', async () => {
    await page.route(DATA, () => undefined);
    await page.goto(address());
    await page.reload();
    await page
      .locator('[data-live=loading]')
      .getByText(/No answer for/)
      .first()
      .waitFor();
    await failed().getByText('admin-api has not answered in time').waitFor();
    await page.unroute(DATA, undefined);
    await page.locator(shown).first().waitFor();
  });

  it('shows the sign-in form when the token has expired, and itself after the next sign-in', async () => {
    await page.goto(address());
    await page.locator(shown).first().waitFor();
    await page.route(DATA, answer(401, 'UNAUTHENTICATED', 'The token is not valid'));
    await page.reload();
    await page.getByText('UNAUTHENTICATED: The token is not valid').waitFor();
    await page.unroute(DATA);
    await page.getByLabel('Token', { exact: true }).fill(api.rootToken);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.locator(shown).first().waitFor();
    expect(page.url()).toContain(`#/${path}?`);
  });
});

it('waits for admin-api before the sign-in, and keeps the token', async () => {
  const page = await browser.open(`${api.url}/#token=${api.rootToken}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.route(/\/api\//, OUTAGES['no server']);
  await page.reload();
  await page.getByText(PARTS['no server']).waitFor();
  expect(await page.getByLabel('Token', { exact: true }).count()).toBe(0);
  await page.unroute(/\/api\//);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.close();
});
