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
});
