import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll } from 'vitest';
import { openPayloadStore } from './open-payload-store';
import { CONFORMANCE_QUOTA_BYTES, describePayloadStore } from './payload-store-conformance.fixture';

const { pool } = testPool();
const dir = mkdtempSync(join(tmpdir(), 'broomwagon-payloads-'));
const common = { url: testRedisUrl(), dir, keyPrefix: pool, quotaBytes: CONFORMANCE_QUOTA_BYTES };

afterAll(async () => {
  rmSync(dir, { recursive: true });
  await flushPrefix(testRedisUrl(), `${pool}:`);
});

for (const driver of ['redis', 'file'] as const) {
  describePayloadStore(driver, async () => openPayloadStore({ ...common, driver }));
}
