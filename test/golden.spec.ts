import { readFileSync, writeFileSync } from 'node:fs';
import { testNatsUrl } from '@broomwagon/testing';
import { connect } from 'nats';
import { afterAll, beforeAll, expect, it } from 'vitest';
// @ts-expect-error Plain JavaScript: it plays against builds of any age.
import { play } from './golden/play.mjs';
import { TestSystem } from './system/test-system';

const FILE = 'test/golden/replies.jsonl';
interface Entry {
  operation: string;
  reply: object;
}

let system: TestSystem;
beforeAll(async () => {
  system = await TestSystem.start({ workers: 0, engines: 0 });
}, 60_000);
afterAll(() => system.stop());

it('gives the same replies as when the golden log was written', async () => {
  const connection = await connect({ servers: testNatsUrl() });
  const send = async (operation: string, body: object): Promise<unknown> => {
    const subject = `rollout.v1.${system.pool}.${operation}`;
    return (await connection.request(subject, JSON.stringify(body), { timeout: 20_000 })).json();
  };
  // The progress of the sweeper depends on time.
  const text = JSON.stringify(await play(send, 7, 300))
    .replaceAll(system.pool, '<pool>')
    .replaceAll(/"expiredEpochs":\d+/g, '"expiredEpochs":0');
  await connection.drain();
  const log = JSON.parse(text) as Entry[];
  if (process.env.GOLDEN_LOG === 'write') {
    writeFileSync(FILE, log.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
  }
  const golden = readFileSync(FILE, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Entry);
  for (const [index, entry] of log.entries()) expect(entry, `operation ${index}`).toEqual(golden[index]);
  expect(log).toHaveLength(golden.length);
}, 120_000);
