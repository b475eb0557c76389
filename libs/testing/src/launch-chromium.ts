import { existsSync } from 'node:fs';
import type { Browser } from 'playwright-core';

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
/** On a busy machine a process may not run for seconds. */
const TIMEOUT_MS = 60_000;

/** Why no browser can be started; undefined if one can. */
export const NO_BROWSER = existsSync(EXECUTABLE) ? undefined : `there is no ${EXECUTABLE}; CHROMIUM names another file`;

/** Starts a Chromium without a window, with an empty profile, which is deleted when the browser is closed. */
export async function launchChromium(): Promise<Browser> {
  // Loaded here: most tests need no browser, and the library is large.
  const { chromium } = await import('playwright-core');
  return chromium.launch({ executablePath: EXECUTABLE, args: FLAGS, timeout: TIMEOUT_MS });
}
