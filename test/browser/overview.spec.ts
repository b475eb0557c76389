import { startRedis } from '@broomwagon/testing';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminApi } from '../system/admin-api';
import { Browser } from '../system/chromium';
import { TestSystem } from '../system/test-system';
import { startWithJobs } from './console-system';

describe('an operator on call', () => {
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

  const show = (address: string) => page.goto(`${api.url}/#/${address}`);
  const alarm = (text: string | RegExp) => page.getByRole('listitem').filter({ hasText: text });

  it('sees services with versions, the open round beside the median step, and the memory of Redis', async () => {
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    for (const app of ['admin-api', 'load-balancer', 'trainer-coordinator', 'worker']) {
      await page
        .getByRole('row')
        .filter({ has: page.getByRole('cell', { name: app, exact: true }) })
        .first()
        .getByText('ready', { exact: true })
        .waitFor();
    }
    const round = page.getByRole('region', { name: 'Open rounds' }).getByRole('row').filter({ hasText: 'running' });
    await round.getByText('0 of 1').waitFor();
    await page.getByText('without a limit').waitFor();
    await page.locator('dl').filter({ hasText: 'Servers ready' }).getByText('4', { exact: true }).waitFor();
  });

  it('is led from an alarm to its runbook, and ends it by its action', async () => {
    await system.call('pool.pause', {});
    const paused = alarm('The pool is paused');
    await paused.getByText('Resume the pool on the page Fleet').waitFor();
    await paused.getByRole('link', { name: 'Runbook BroomwagonNoGrants' }).click();
    await page.getByRole('heading', { name: 'BroomwagonNoGrants' }).waitFor();
    await page.goBack();
    await paused.getByRole('button', { name: 'Resume pool' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Resume pool' }).click();
    await expect.poll(async () => (await system.call('lb.status', {})).paused).toBe(false);
    await paused.waitFor({ state: 'detached' });
  });

  it('is led from an alarm about a server to its reason, its next step, its requests and its actions', async () => {
    const { epoch } = await system.call('server.get', { serverId: 'engine-3' });
    await system.call('server.fence', { serverId: 'engine-3', epoch, reason: 'by the test' });
    await show('overview');
    await alarm(/engine-3/)
      .getByRole('link', { name: 'Server engine-3' })
      .click();
    const panel = page.getByRole('region', { name: 'Server engine-3' });
    await panel.getByText('The engine does not answer, or an operator fenced').waitFor();
    await panel.getByText('Check engine and network').waitFor();
    await panel.getByText('No request runs on this server.').waitFor();
    for (const name of ['Drain', 'Cordon', 'Reconcile', 'Quarantine', 'Remove']) {
      await panel.getByRole('button', { name, exact: true }).waitFor();
    }
    const first = page.getByRole('table').last().getByRole('row').nth(1);
    expect(await first.textContent()).toContain('engine-3');
  });

  it('reads in numbers what a dangerous change stops, begins at Cancel, and has the focus back afterwards', async () => {
    const { requests } = await system.call('request.list', { job: 'running', state: 'running' });
    const serverId = requests.find((one) => one.serverId !== undefined)!.serverId!;
    await show(`fleet?server=${serverId}`);
    const button = page.getByRole('region', { name: `Server ${serverId}` }).getByRole('button', { name: 'Quarantine' });
    await button.click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(/^This interrupts \d+ requests?, [\d.]+[KM]? tokens\.$/).waitFor();
    await expect.poll(() => page.locator(':focus').textContent()).toBe('Cancel');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await expect.poll(() => button.evaluate((found) => found.matches(':focus'))).toBe(true);
    expect((await system.call('server.get', { serverId })).state).toBe('ready');
  });

  it('moves through the load map by the keyboard, and is led to the row of a server', async () => {
    await show('fleet');
    const map = page.getByRole('group', { name: /^Load of 4 servers/ });
    await map.getByRole('button').first().focus();
    await page.keyboard.press('ArrowRight');
    const name = await page.locator(':focus').getAttribute('data-server');
    expect(await page.locator(':focus').getAttribute('aria-label')).toMatch(/: ready, \d+ % of its capacity$/);
    // A cell is filled by a gradient, which needs a share without a space before the sign.
    expect(await page.locator(':focus').getAttribute('style')).toMatch(/--load: \d+%/);
    expect(await page.evaluate('getComputedStyle(document.activeElement).backgroundImage')).toContain(
      'linear-gradient',
    );
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: `Server ${name}` }).waitFor();
    expect(await page.locator('tr[data-marked]').textContent()).toContain(name);
    expect(page.url()).toContain(`server=${name}`);
  });

  it('cordons a server and uncordons it', async () => {
    await show('fleet?server=engine-2');
    for (const [name, state] of [
      ['Cordon', 'cordoned'],
      ['Uncordon', 'ready'],
    ] as const) {
      await page.getByRole('region', { name: 'Server engine-2' }).getByRole('button', { name, exact: true }).click();
      await page.getByRole('dialog').getByRole('button', { name, exact: true }).click();
      await expect.poll(async () => (await system.call('server.get', { serverId: 'engine-2' })).state).toBe(state);
    }
  });

  it.each([
    ['fleet?server=no-such', 'The pool has no server no-such (any more)'],
    ['round?job=trained&round=no-such', 'The services do not know what this address names.'],
    ['round?job=no-such', 'The services do not know what this address names.'],
    ['timeline?job=trained&round=no-such', 'The job has no summary of round no-such (any more)'],
    ['rebalance?plan=no-such', 'The services do not know what this address names.'],
    ['runbooks?name=no-such', 'There is no runbook no-such (any more).'],
    ['no-such', 'The console has no page no-such (any more)'],
  ])('reads that a link names nothing any more: %s', async (address, text) => {
    await show(address);
    await page.getByText(text).first().waitFor();
  });

  it('finds sorting, filters and time of the events in the address', async () => {
    await show('fleet');
    await page.getByRole('button', { name: 'In flight' }).click();
    const filter = page.getByRole('combobox', { name: 'Filter servers by state' });
    await filter.click();
    await page.getByRole('option', { name: 'ready' }).click();
    await expect.poll(() => page.url()).toMatch(/sort=In(\+|%20)flight/);
    await page.reload();
    await page.getByRole('columnheader', { name: 'In flight' }).waitFor();
    expect(await page.getByRole('columnheader', { name: 'In flight' }).getAttribute('aria-sort')).toBe('ascending');
    expect(await filter.inputValue()).toBe('ready');
    await show('events?hours=24&subjects=round');
    await page.getByRole('row').filter({ hasText: 'round.opened' }).first().waitFor();
    expect(await page.getByRole('row').filter({ hasText: 'server.' }).count()).toBe(0);
    await show('round?job=trained');
    const rounds = page.getByRole('region', { name: 'Rounds of the job, latest first' });
    await rounds.getByRole('row').filter({ hasText: 'closed' }).first().waitFor();
  });

  it('shows times in UTC by choice, with date and zone', async () => {
    await show('events?hours=24');
    await page.getByRole('button', { name: /role admin/ }).click();
    await page.getByRole('menuitem', { name: 'Show times in UTC' }).click();
    await page
      .getByRole('cell', { name: /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/ })
      .first()
      .waitFor();
  });

  it('creates a token, reads who did it, and revokes it', async () => {
    await show('tokens');
    await page.getByRole('button', { name: 'Create a token' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('on-call');
    await dialog.getByRole('button', { name: 'Create a token' }).click();
    await page.getByText('The token on-call is shown only now').waitFor();
    await show('audit?where=all');
    await page.getByRole('row').filter({ hasText: 'token.create' }).first().waitFor();
    await show('tokens');
    const row = page.getByRole('row').filter({ hasText: 'on-call' });
    await row.getByRole('button', { name: 'Revoke' }).click();
    await dialog.getByRole('button', { name: 'Revoke' }).click();
    await row.waitFor({ state: 'detached' });
    await show('changes');
    await page.getByText('Redis was not restarted or set back').waitFor();
  });

  it('reaches every page, pool and job on a screen of 390 pixels', async () => {
    const small = await Browser.start({ width: 390, height: 800 });
    try {
      const phone = await small.open(`${api.url}/#token=${api.rootToken}`);
      await phone.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
      const menu = phone.getByRole('button', { name: 'Navigation' });
      const links = phone.getByRole('navigation', { name: 'Pages' }).getByRole('link');
      const titles = await links.allTextContents();
      for (const title of titles) {
        await menu.click();
        await links.filter({ hasText: new RegExp(`^${title}$`) }).click();
        await phone.getByRole('heading', { name: title, level: 1 }).waitFor();
      }
      await menu.click();
      await phone.getByRole('navigation').getByRole('combobox', { name: 'Job' }).click();
      await phone.getByRole('option', { name: 'trained' }).click();
      await expect.poll(() => phone.url()).toContain('job=trained');
      await menu.click();
      await phone.goto(`${api.url}/#/fleet`);
      const cell = phone.getByRole('group', { name: /^Load of/ }).getByRole('button');
      await cell.first().click();
      const panel = phone.getByRole('region', { name: /^Server / });
      await panel.getByRole('button', { name: 'Remove' }).click();
      await phone.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
      await phone.getByRole('button', { name: /role admin/ }).click();
      await phone.getByRole('menuitem', { name: 'Sign out' }).click();
      await phone.getByRole('button', { name: 'Sign in' }).waitFor();
    } finally {
      await small.close();
    }
  });
});

it('says that Redis is down, since when, and what to do, and recovers', async () => {
  const redis = await startRedis();
  const system = await TestSystem.start({ engines: 1, workers: 0, redisUrl: redis.url });
  const api = await AdminApi.start(system.keyPrefix, { redisUrl: redis.url });
  const browser = await Browser.start();
  try {
    const page = await browser.open(`${api.url}/#token=${api.rootToken}`);
    await page.getByText('Servers ready').waitFor();
    await redis.kill();
    const down = page.getByRole('listitem').filter({ hasText: 'Redis does not answer' });
    await down.getByText('Start Redis').waitFor();
    await page.locator('dl').filter({ hasText: 'Memory of Redis' }).getByText('–').waitFor();
    await page.goto(`${api.url}/#/round`);
    await page.locator('[data-live]').first().waitFor();
    await page.locator('[data-live=failed], [data-live=stale]').filter({ hasText: /Redis/ }).first().waitFor();
    expect(await page.getByText('There is no job yet').count()).toBe(0);
    await redis.restart();
    await page.getByText('There is no job yet').waitFor();
  } finally {
    await browser.close();
    await api.close();
    await system.stop();
    await redis.stop();
  }
});
