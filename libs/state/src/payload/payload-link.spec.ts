import { Logger } from '@nestjs/common';
import { FaultyLink, startRedis, testPool, type ServerHandle } from '@broomwagon/testing';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { openPayloadStore } from './open-payload-store';
import type { PayloadStore } from './payload-store';

let server: ServerHandle;
let link: FaultyLink;
let store: PayloadStore;
let lines: string[];

beforeAll(async () => {
  server = await startRedis();
});
afterAll(() => server.stop());
beforeEach(async () => {
  lines = [];
  for (const level of ['log', 'warn'] as const) {
    vi.spyOn(Logger.prototype, level).mockImplementation((...parts: unknown[]) => {
      const text = parts.find((part) => typeof part === 'string' && part.includes('(payloads)'));
      if (text !== undefined) lines.push(String(text));
    });
  }
  link = await FaultyLink.start(server.port);
  store = await openStore(2_000);
});
afterEach(async () => {
  vi.restoreAllMocks();
  await store.close();
  await link.stop();
});

/** Opens a store through the link. */
function openStore(silenceMs: number): Promise<PayloadStore> {
  const url = `redis://127.0.0.1:${link.port}`;
  const times = { commandTimeoutMs: 500, silenceMs };
  return openPayloadStore({ driver: 'redis', url, dir: '', keyPrefix: testPool().pool, ...times });
}

const payload = { pool: 'p', job: 'j', owner: 'o', name: 'tokens' };
const check = () => store.checkWritable().then(() => 'writable', String);

it.each(['out', 'back', undefined] as const)(
  'cuts and dials the link to the payload store again when bytes are dropped, direction: %s',
  async (direction) => {
    const ref = await store.put(payload, Buffer.from('kept'));
    link.begin({ kind: 'black-hole', direction });
    await expect.poll(check).not.toBe('writable');
    await expect.poll(check).toBe('writable');
    expect((await store.get(ref)).toString()).toBe('kept');
    expect(lines).toEqual([expect.stringContaining('Outage begins'), expect.stringContaining('works again')]);
  },
);

it('restores the link to a payload store that answers a new connection later than any command may take', async () => {
  await store.close();
  store = await openStore(4_000);
  link.greetingDelayMs = 1_500;
  link.cut();
  await expect.poll(() => lines.length).toBe(1);
  await expect.poll(check).toBe('writable');
  expect(lines).toEqual([expect.stringContaining('Outage begins'), expect.stringContaining('works again')]);
});

it('names the link while nothing accepts connections to the payload store', async () => {
  link.begin({ kind: 'refuse' });
  await expect.poll(check).toContain('(payloads): ');
  link.end();
  await expect.poll(check).toBe('writable');
});

it('is not writable while the server of the payloads is a replica', async () => {
  const admin = new Redis(server.url);
  await admin.replicaof('127.0.0.1', 1);
  await expect.poll(check).toContain('READONLY');
  await admin.replicaof('NO', 'ONE');
  await expect.poll(check).toBe('writable');
  admin.disconnect();
});
