import { launchChromium } from '@broomwagon/testing';
import type { Page } from 'playwright-core';
import { median } from '../arithmetic';

const STEPS = 120;
const WAIT_MS = 120_000;
/** Position of the bars, pixels of the drawing. */
const POINT = { x: 300, y: 260 };
/** Starts a list of the times of frames, in the page. */
const NOTE_FRAMES = `{
  performance.clearMeasures('timeline-redraw');
  const times = (globalThis.frameTimes = []);
  const note = (atMs) => {
    times.push(atMs);
    requestAnimationFrame(note);
  };
  requestAnimationFrame(note);
}`;

export interface Frames {
  action: string;
  redraws: number;
  /** Median run time of the script that draws. */
  redrawMs: number;
  longestRedrawMs: number;
  /** Median time from one frame to the next. */
  frameMs: number;
  longestFrameMs: number;
}

/** Moves and zooms a timeline with the mouse, and reads the times of its frames. */
export async function measureFrames(url: string, bars: number): Promise<Frames[]> {
  const browser = await launchChromium();
  try {
    const page = await browser.newPage({ viewport: { width: 1_280, height: 800 } });
    await page.goto(url);
    const canvas = page.locator(`canvas[data-bars="${bars}"]`);
    await canvas.waitFor({ timeout: WAIT_MS });
    await canvas.hover({ position: POINT });
    const box = (await canvas.boundingBox())!;
    const [x, y] = [box.x + POINT.x, box.y + POINT.y];
    const zoomed = await measure(page, 'zoom', (step) => page.mouse.wheel(0, step % 40 < 20 ? -100 : 100));
    await page.mouse.down();
    const panned = await measure(page, 'pan', (step) => page.mouse.move(x + 3 * (step % 60), y + (step % 60)));
    await page.mouse.up();
    return [zoomed, panned];
  } finally {
    await browser.close();
  }
}

async function measure(page: Page, action: string, act: (step: number) => Promise<void>): Promise<Frames> {
  await page.evaluate(NOTE_FRAMES);
  for (let step = 0; step < STEPS; step++) await act(step);
  const { redraws, frames } = await page.evaluate(() => ({
    redraws: performance.getEntriesByName('timeline-redraw').map(({ duration }) => duration),
    frames: (globalThis as unknown as { frameTimes: number[] }).frameTimes,
  }));
  const gaps = frames.slice(1).map((atMs, index) => atMs - frames[index]!);
  return {
    action,
    redraws: redraws.length,
    redrawMs: median(redraws),
    longestRedrawMs: Math.max(...redraws),
    frameMs: median(gaps),
    longestFrameMs: Math.max(...gaps),
  };
}
