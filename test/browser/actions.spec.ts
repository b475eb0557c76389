import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { AdminApi } from '../system/admin-api';
import { Browser } from '../system/chromium';
import type { TestSystem } from '../system/test-system';
import { startWithJobs } from './console-system';

const ACTIONS = [
  { address: 'fleet', names: ['Drain', 'Pause pool'] },
  { address: 'round?job=running', names: ['Abort requests', 'Abort'] },
  { address: 'rebalance', names: ['Plan', 'Execute'] },
];
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

const show = (page: Page, address: string) => page.goto(`${api.url}/#/${address}`);
const readState = async (serverId: string) => (await system.call('server.get', { serverId })).state;

it('a viewer sees every action and can use none', async () => {
  const page = await browser.open(`${api.url}/#token=${await api.createToken('viewer')}`);
  await page.getByRole('button', { name: 'viewer, role viewer' }).waitFor();
  for (const { address, names } of ACTIONS) {
    await show(page, address);
    for (const name of names) {
      const buttons = page.getByRole('button', { name, exact: true });
      await buttons.first().waitFor();
      for (const button of await buttons.all()) expect(await button.isDisabled()).toBe(true);
    }
  }
  await page.close();
});

describe('an operator', () => {
  let page: Page;

  beforeAll(async () => {
    page = await browser.open(`${api.url}/#token=${await api.createToken('operator')}`);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
  });

  /** Presses a button of the page, then the button of the same name in the dialog. */
  const act = async (button: ReturnType<Page['getByRole']>, name: string) => {
    await button.click();
    await page.getByRole('dialog').getByRole('button', { name, exact: true }).click();
  };
  const inRow = (row: string, name: string) =>
    page.getByRole('row').filter({ hasText: row }).getByRole('button', { name, exact: true });
  const button = (name: string) => page.getByRole('button', { name, exact: true });

  it('changes nothing without a confirmation', async () => {
    await show(page, 'fleet');
    await inRow('engine-0', 'Drain').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await readState('engine-0')).toBe('ready');
  });

  it('pauses the pool and resumes it', async () => {
    await act(button('Pause pool'), 'Pause pool');
    await expect.poll(async () => (await system.call('lb.status', {})).paused).toBe(true);
    await page.getByText('paused', { exact: true }).waitFor();
    await act(button('Resume pool'), 'Resume pool');
    await expect.poll(async () => (await system.call('lb.status', {})).paused).toBe(false);
  });

  it('drains a server, plans the moves of its requests, executes them, and reads that they have moved', async () => {
    const { requests } = await system.call('request.list', { job: 'running' });
    const serverId = requests.find((one) => one.serverId !== undefined)!.serverId!;
    await act(inRow(serverId, 'Drain'), 'Drain');
    await expect.poll(() => readState(serverId)).toBe('draining');
    await show(page, 'rebalance');
    await act(button('Plan'), 'Plan');
    await page.getByRole('cell', { name: 'leave' }).first().waitFor();
    await act(button('Execute'), 'Execute');
    await page.getByRole('cell', { name: 'moved' }).first().waitFor();
    await expect
      .poll(async () => {
        const now = await system.call('request.list', { job: 'running' });
        return now.requests.filter((one) => one.serverId === serverId).length;
      })
      .toBe(0);
  });

  it('undrains a server', async () => {
    // A drained server without requests would be removed at once.
    const { requests } = await system.call('request.list', { job: 'running', state: 'running' });
    const serverId = requests.find((one) => one.serverId !== undefined)!.serverId!;
    await show(page, 'fleet');
    await act(inRow(serverId, 'Drain'), 'Drain');
    await expect.poll(() => readState(serverId)).toBe('draining');
    await act(inRow(serverId, 'Undrain'), 'Undrain');
    await expect.poll(() => readState(serverId)).toBe('ready');
  });

  it('reads why an action was refused, and the remedy', async () => {
    await show(page, 'round?job=running');
    await button('Abort requests').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Group' }).fill('not/a valid id\u0007');
    await dialog.getByRole('button', { name: 'Abort requests' }).click();
    const alert = dialog.getByRole('alert');
    await alert.getByText('VALIDATION_FAILED').waitFor();
    await alert.getByText('groupId', { exact: true }).waitFor();
    await alert.getByText('Change this field').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
  });

  it('aborts one request, then a group', async () => {
    const before = await system.call('request.list', { job: 'running', state: 'running' });
    const { requestId } = before.requests[0]!;
    await act(inRow(requestId, 'Abort'), 'Abort');
    const left = async () => {
      const { requests } = await system.call('request.list', { job: 'running' });
      return requests.map((one) => one.requestId);
    };
    await expect.poll(left).not.toContain(requestId);
    const other = requestId.includes('/one/') ? 'two' : 'one';
    await button('Abort requests').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Group' }).fill(other);
    await dialog.getByText(/^This stops 2 requests, [\d.]+[KM]? tokens\.$/).waitFor();
    await dialog.getByRole('button', { name: 'Abort requests' }).click();
    await expect.poll(left).toEqual([]);
  });
});
