import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { flushPrefix, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, expect, it } from 'vitest';
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

it('knows the job of a file that was written before its header named one', async () => {
  const store = await openPayloadStore({ ...common, dir: join(dir, 'old'), driver: 'file' });
  await store.put({ pool: 'p', job: 'j', owner: 'g', name: 'prompt' }, Buffer.from('x'));
  const files = readdirSync(join(dir, 'old', 'p'), { recursive: true, encoding: 'utf8' })
    .map((name) => join(dir, 'old', 'p', name))
    .filter((path) => statSync(path).isFile() && readFileSync(path, 'utf8').includes('"job":"j",'));
  expect(files).toHaveLength(1);
  writeFileSync(files[0]!, readFileSync(files[0]!, 'utf8').replace('"job":"j",', ''));
  utimesSync(files[0]!, 1, 1);
  const asked: object[] = [];
  const isOwned = async (payload: object) => {
    asked.push(payload);
    return true;
  };
  await store.sweepOrphans(0, isOwned);
  expect(asked).toEqual([expect.objectContaining({ pool: 'p', job: 'j', owner: 'g' })]);
  await store.close();
});
