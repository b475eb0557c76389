import { launchChromium } from '@broomwagon/testing';
import type { Browser as Chromium, BrowserContext, Page } from 'playwright-core';

export { NO_BROWSER } from '@broomwagon/testing';

/** On a busy machine a process may not run for seconds. */
const TIMEOUT_MS = 60_000;

/** A Chromium that records its errors, and whatever its pages ask of another host. */
export class Browser {
  readonly foreignRequests: string[] = [];
  readonly errors: string[] = [];

  private constructor(
    private readonly chromium: Chromium,
    private readonly context: BrowserContext,
  ) {
    context.on('request', (request) => {
      const { hostname, protocol } = new URL(request.url());
      if (protocol.startsWith('http') && hostname !== '127.0.0.1') this.foreignRequests.push(request.url());
    });
    context.on('weberror', (error) => this.errors.push(error.error().message));
    context.on('console', (message) => {
      if (message.type() === 'error') this.errors.push(message.text());
    });
  }

  static async start(options: { colorScheme?: 'light' | 'dark'; width?: number; height?: number } = {}) {
    const { colorScheme = 'light', width = 1_280, height = 800 } = options;
    const chromium = await launchChromium();
    const context = await chromium.newContext({ colorScheme, viewport: { width, height } });
    context.setDefaultTimeout(TIMEOUT_MS);
    return new Browser(chromium, context);
  }

  async open(url: string): Promise<Page> {
    const page = await this.context.newPage();
    await page.goto(url);
    return page;
  }

  close(): Promise<void> {
    return this.chromium.close();
  }
}
