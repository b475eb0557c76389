import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BrowserContext, chromium, type Page } from 'playwright-core';

const EXECUTABLE = process.env.CHROMIUM ?? '/usr/bin/chromium';
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
/** A busy machine stands still for seconds at times. */
const TIMEOUT_MS = 60_000;

/** Why there is no test in a browser; undefined if there is one. */
export const NO_BROWSER = existsSync(EXECUTABLE) ? undefined : `there is no ${EXECUTABLE} (CHROMIUM names another)`;

/** A Chromium with a profile of its own. It records whatever a page asks of another host, and its errors. */
export class Browser {
  readonly foreignRequests: string[] = [];
  readonly errors: string[] = [];

  private constructor(
    private readonly folder: string,
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
    const { colorScheme = 'light', width = 1280, height = 800 } = options;
    const folder = mkdtempSync(join(tmpdir(), 'broomwagon-chromium-'));
    const context = await chromium.launchPersistentContext(folder, {
      executablePath: EXECUTABLE,
      args: FLAGS,
      colorScheme,
      viewport: { width, height },
      timeout: TIMEOUT_MS,
    });
    context.setDefaultTimeout(TIMEOUT_MS);
    return new Browser(folder, context);
  }

  open(url: string): Promise<Page> {
    return this.context.newPage().then(async (page) => {
      await page.goto(url);
      return page;
    });
  }

  async close(): Promise<void> {
    await this.context.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
