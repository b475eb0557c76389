import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { freePort } from './free-port';

const listeners: ReturnType<typeof createServer>[] = [];
afterEach(() => {
  for (const listener of listeners.splice(0)) listener.close();
});

async function listen(port = 0): Promise<number> {
  const listener = createServer();
  listeners.push(listener);
  await new Promise<void>((resolve) => listener.listen(port, '127.0.0.1', resolve));
  return (listener.address() as AddressInfo).port;
}

it.runIf(process.platform === 'linux')('gives ports that the system gives to nobody by itself', async () => {
  const range = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(/\s+/).map(Number);
  const [first, last] = range as [number, number];
  const ports = await Promise.all(Array.from({ length: 50 }, () => freePort()));
  expect(ports.filter((port) => port >= first && port <= last)).toEqual([]);
});

it('gives a port on which nobody listens, and takes no other', async () => {
  const taken = await listen();
  const free = await freePort();
  const choices = [taken, taken, free];
  expect(await freePort(() => choices.shift()!)).toBe(free);
  expect(await listen(free)).toBe(free);
  await expect(freePort(() => taken)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
});
