import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { SglangAdapter } from './sglang.adapter';

let loads: object[] = [];
const server = createServer((_, response) => response.end(JSON.stringify({ loads })));
afterEach(() => new Promise((resolve) => server.close(resolve)));

it('adds up the loads of all ranks, and leaves out values that no rank reports', async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const adapter = new SglangAdapter(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  loads = [
    {
      num_running_reqs: 2,
      num_waiting_reqs: 1,
      token_usage: 0.25,
      num_waiting_uncached_tokens: 700,
      max_total_num_tokens: 4_000,
    },
    {
      num_running_reqs: 3,
      num_waiting_reqs: 0,
      token_usage: 0.5,
      num_waiting_uncached_tokens: 0,
      max_total_num_tokens: 4_000,
    },
  ];
  expect((await adapter.report()).load).toEqual({
    running: 5,
    waiting: 1,
    kvUse: 0.5,
    kvTokens: 8_000,
    uncachedTokens: 700,
  });
  loads = [{ num_reqs: 4, num_waiting_reqs: 1 }];
  const { uncachedTokens, ...rest } = (await adapter.report()).load!;
  expect(uncachedTokens).toBeUndefined();
  expect(rest).toMatchObject({ running: 3, waiting: 1 });
  server.closeAllConnections();
});
