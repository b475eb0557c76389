import { setTimeout as delay } from 'node:timers/promises';
import { launchChromium } from '@broomwagon/testing';
import type { Browser, Page } from 'playwright-core';
import { median } from '../arithmetic';

const REPEATS = 5;
const WATCH_MS = 60_000;
const QUICK_WATCH_MS = 15_000;
/** Pause after the first view, so that Chromium's remaining start-up work is not measured. */
const SETTLE_MS = 5_000;
/** Script that returns the milliseconds since the start of the navigation, after the next drawing. */
const TIME_AFTER_DRAWING = `new Promise((settle) =>
  requestAnimationFrame(() => requestAnimationFrame(() => settle(performance.now()))))`;

/** A page of the console. */
export interface View {
  page: string;
  /** Part of the URL after the origin. */
  address: string;
  /** Selector of the last element that the first view needs. */
  shown: string;
}

export interface WatchedPage {
  page: string;
  /** Median time from the start of the navigation until the first view is drawn, in a new browser. */
  firstViewMs: number;
  /** CPU use of the renderer processes while nobody uses the page, % of a core. */
  pageCpuPercent: number;
  /** CPU use of all processes of Chromium in the same time, % of a core. */
  browserCpuPercent: number;
  heapMb: number;
}

/** Opens a page in new browsers, then watches it in one of them. */
export async function watchPage(
  view: View,
  { url, token }: { url: string; token: string },
  isQuick: boolean,
): Promise<WatchedPage> {
  const address = `${url}/${view.address}${view.address.includes('?') ? '&' : '?'}token=${token}`;
  const firstViews: number[] = [];
  for (let repeat = 0; repeat < (isQuick ? 1 : REPEATS); repeat++) {
    const browser = await launchChromium();
    firstViews.push((await open(browser, address, view.shown)).firstViewMs);
    await browser.close();
  }
  const browser = await launchChromium();
  const { page } = await open(browser, address, view.shown);
  await delay(SETTLE_MS);
  const before = await cpuSeconds(browser);
  const startedAt = performance.now();
  await delay(isQuick ? QUICK_WATCH_MS : WATCH_MS);
  const seconds = (performance.now() - startedAt) / 1_000;
  const after = await cpuSeconds(browser);
  const heapBytes = await page.evaluate(
    () => (performance as { memory?: { usedJSHeapSize: number } }).memory?.usedJSHeapSize ?? 0,
  );
  await browser.close();
  return {
    page: view.page,
    firstViewMs: median(firstViews),
    pageCpuPercent: ((after.renderer - before.renderer) / seconds) * 100,
    browserCpuPercent: ((after.all - before.all) / seconds) * 100,
    heapMb: heapBytes / 1e6,
  };
}

/** Opens the page. The time is read within the page, since a call from here takes longer than a frame. */
async function open(browser: Browser, address: string, shown: string): Promise<{ page: Page; firstViewMs: number }> {
  const page = await browser.newPage({ viewport: { width: 1_280, height: 800 } });
  await page.goto(address, { waitUntil: 'commit' });
  await page.waitForSelector(shown);
  return { page, firstViewMs: await page.evaluate<number>(TIME_AFTER_DRAWING) };
}

/** CPU seconds so far of all processes of a browser, and of its renderer processes. */
async function cpuSeconds(browser: Browser): Promise<{ all: number; renderer: number }> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  const sum = (processes: typeof processInfo) => processes.reduce((total, { cpuTime }) => total + cpuTime, 0);
  return { all: sum(processInfo), renderer: sum(processInfo.filter(({ type }) => type === 'renderer')) };
}
