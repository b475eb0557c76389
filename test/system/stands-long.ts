import { expect } from 'vitest';
import { fetchState } from '../../lab/engine-simulator/src/test-engine';

/** Waits until an engine whose requests stand still has had twice the time that it had for their tokens. */
export async function standsLong(url: string): Promise<void> {
  const { simulatedSeconds } = await fetchState(url);
  await expect.poll(async () => (await fetchState(url)).simulatedSeconds).toBeGreaterThan(2 * simulatedSeconds);
}
