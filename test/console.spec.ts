import { join } from 'node:path';
import { freePort, ProcessGroup } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminApi } from './system/admin-api';
import { Browser, NO_BROWSER } from './system/chromium';
import { TestSystem } from './system/test-system';

/** The short form of `npm run test:browser`. */
describe('the console', () => {
  let system: TestSystem;
  let api: AdminApi;
  let browser: Browser;

  beforeAll(async () => {
    system = await TestSystem.start({ workers: 0, engines: 2 });
    api = await AdminApi.start(system.keyPrefix);
    if (NO_BROWSER === undefined) browser = await Browser.start();
  });
  afterAll(async () => {
    await browser?.close();
    await api?.close();
    await system?.stop();
  });

  it('is served without a token, with a policy that allows no other host', async () => {
    const index = await fetch(`${api.url}/`);
    const text = await index.text();
    expect(index.status).toBe(200);
    expect(index.headers.get('Cache-Control')).toBe('no-cache');
    const policy = index.headers.get('Content-Security-Policy')!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toMatch(/https?:|\*/);
    const [, script] = /src="(\/assets\/[^"]+)"/.exec(text)!;
    const asset = await fetch(`${api.url}${script}`);
    expect(asset.headers.get('Cache-Control')).toBe('public, max-age=31536000, immutable');
  });

  it.each([
    ['Range', 'bytes=999999999-'],
    ['If-Match', '"x"'],
  ])('refuses a wrong header %s of a request for a file', async (name, value) => {
    const response = await fetch(`${api.url}/index.html`, { headers: { [name]: value } });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ code: 'VALIDATION_FAILED' });
  });

  it('hides no route of the API', async () => {
    expect((await fetch(`${api.url}/api/v1/pools`)).status).toBe(401);
    expect(await (await fetch(`${api.url}/health`)).json()).toEqual({ status: 'ok' });
    const missing = await fetch(`${api.url}/assets/../api/v1/unknown`);
    expect(await missing.json()).toMatchObject({ code: 'ROUTE_NOT_FOUND' });
    expect(await (await fetch(`${api.url}/assets/unknown.js`)).json()).toMatchObject({ code: 'ROUTE_NOT_FOUND' });
  });

  it('is served from its sources by `npx vite apps/console`', async () => {
    const group = new ProcessGroup();
    const port = String(await freePort());
    const url = `http://127.0.0.1:${port}`;
    const vite = join('node_modules', 'vite', 'bin', 'vite.js');
    const options = ['--host', '127.0.0.1', '--port', port];
    try {
      await group.start({
        name: 'vite',
        command: [process.execPath, vite, 'apps/console', ...options],
        ready: `${url}/`,
      });
      const module = await fetch(`${url}/src/session/session.tsx`);
      expect(await module.text()).toContain('/libs/admin-client/src/index.ts');
    } finally {
      await group.stopAll();
    }
  });

  it('signs in by the address and shows the servers', async ({ skip }) => {
    skip(NO_BROWSER !== undefined, NO_BROWSER);
    const page = await browser.open(`${api.url}/#token=${api.rootToken}`);
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
    await page.getByRole('cell', { name: 'load-balancer' }).waitFor();
    expect(page.url()).not.toContain(api.rootToken);
    expect(browser.foreignRequests).toEqual([]);
    expect(browser.errors).toEqual([]);
  });
});
