import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Browser } from '../system/chromium';
import { RunningSystem } from '../system/running-system';

const FOLDER = 'docs/images';
const MAX_BYTES = 150_000;
const SIZE = { width: 1_280, height: 800 };
const TIMEOUT_MS = 900_000;
/** Pages about completed steps; the others are shown while a round runs. */
const AFTERWARDS = new Set(['ledger', 'timeline', 'frontier']);
const SHOWN_MS = 3_000;

/** `npm run screenshots`: a picture of each page in light and dark colors, of a rollout with 16 simulated engines. */
it('makes pictures of all pages', { timeout: TIMEOUT_MS }, async () => {
  mkdirSync(FOLDER, { recursive: true });
  const options = '--engines 16 --groups 24 --samples 8 --steps 12 --speed 15 --job demo';
  const system = await RunningSystem.start(...options.split(' '));
  const sizes: Record<string, number> = {};
  const shoot = async (isWanted: (path: string) => boolean) => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const browser = await Browser.start({ colorScheme, ...SIZE });
      const page = await browser.open(system.url);
      const links = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
      await links.first().waitFor();
      for (const link of await links.all()) {
        const [, path] = /#\/([\w-]+)/.exec((await link.getAttribute('href'))!)!;
        if (!isWanted(path!)) continue;
        await page.goto(`${new URL(system.url).origin}/#/${path}?job=demo`);
        if (path === 'rebalance') {
          await page.getByRole('button', { name: 'Plan' }).click();
          await page.getByRole('dialog').getByRole('button', { name: 'Plan' }).click();
        }
        await page
          .getByText(/^Reading /)
          .first()
          .waitFor({ state: 'detached' });
        await page.waitForTimeout(SHOWN_MS);
        const file = join(FOLDER, `console-${path}-${colorScheme}.png`);
        await page.screenshot({ path: file });
        sizes[file] = statSync(file).size;
      }
      expect(browser.errors).toEqual([]);
      await browser.close();
    }
  };
  try {
    await expect.poll(() => system.output, { timeout: TIMEOUT_MS }).toMatch(/step 4 of/);
    await shoot((path) => !AFTERWARDS.has(path));
    await expect.poll(() => system.output, { timeout: TIMEOUT_MS }).toMatch(/The system keeps running/);
    await shoot((path) => AFTERWARDS.has(path));
  } finally {
    await system.stop();
  }
  console.log(sizes);
  expect(Object.entries(sizes).filter(([, size]) => size > MAX_BYTES)).toEqual([]);
});
