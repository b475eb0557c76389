import { expect, it } from 'vitest';
import { Browser } from '../system/chromium';
import { RunningSystem } from '../system/running-system';

it('npm start prints an address that opens the console, signed in, while the first rollout runs', async () => {
  const system = await RunningSystem.start(
    '--steps',
    '2',
    '--groups',
    '8',
    '--samples',
    '2',
    '--engines',
    '3',
    '--no-baseline',
  );
  const browser = await Browser.start();
  try {
    const page = await browser.open(system.url);
    await page.getByRole('cell', { name: 'trainer-coordinator' }).waitFor();
    expect(page.url()).not.toContain('token');
    await page.getByRole('link', { name: 'Round' }).click();
    await page.getByText(/of 8 groups/).waitFor();
  } finally {
    await browser.close();
    await system.stop();
  }
});
