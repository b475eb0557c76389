import { buildNatsAccount, startNats } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pytest, startPythonSystem } from './python/pytest';
import type { TestSystem } from './system/test-system';

/** Path of a Python with nats-py and pytest, from scripts/test.mjs. */
const python = process.env.CLIENT_PYTHON;

// `npm run test:python` runs all tests, with every Python.
describe.skipIf(python === undefined)('the client for Python', () => {
  let system: TestSystem;

  beforeAll(async () => {
    system = await startPythonSystem();
  });
  afterAll(() => system?.stop());

  it('passes its short tests against the services', async () => {
    const output = await pytest(python!, system, ['-m', 'short'], { CANCELLATIONS: '80' });
    expect(output).toMatch(/\d+ passed/);
    await system.expectAtRest();
  });

  it('connects with the JWT of a credentials file, and reads the file again when the JWT has ended', async () => {
    const { configuration, accountSeed } = buildNatsAccount();
    const nats = await startNats({ configuration });
    try {
      const settings = { NATS_URL: nats.url, TEST_ACCOUNT_SEED: accountSeed };
      const output = await pytest(python!, system, ['tests/test_credentials.py'], settings);
      expect(output).toMatch(/4 passed/);
    } finally {
      await nats.stop();
    }
  });
});
