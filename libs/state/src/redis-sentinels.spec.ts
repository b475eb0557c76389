import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { testRedisUrl } from '@broomwagon/testing';
import { afterEach, expect, it } from 'vitest';
import { connectRedis } from './redis';

const ends: (() => unknown)[] = [];
afterEach(() => Promise.all(ends.splice(0).map((end) => end())));

/** Answers as a Sentinel, with this primary and this epoch. */
class FakeSentinel {
  readonly sockets = new Set<Socket>();
  /** How often it was asked for its epoch. */
  asked = 0;

  private constructor(
    private readonly server: Server,
    public primary: URL,
    public epoch: number,
  ) {
    server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.on('close', () => this.sockets.delete(socket)).on('error', () => undefined);
      // Each command arrives in one piece, because it is short.
      socket.on('data', (bytes) => {
        for (const command of bytes.toString().split(/(?=\*\d+\r\n)/)) socket.write(this.answer(command.toUpperCase()));
      });
    });
  }

  static async start(primary: string, epoch: number): Promise<FakeSentinel> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const sentinel = new FakeSentinel(server, new URL(primary), epoch);
    ends.push(() => {
      server.close();
      for (const socket of sentinel.sockets) socket.destroy();
    });
    return sentinel;
  }

  get host(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  private answer(command: string): string {
    const { hostname, port } = this.primary;
    if (command.includes('HELLO')) return '-NOPROTO unsupported protocol version\r\n';
    if (command.includes('GET-MASTER-ADDR')) return formatRespList([hostname, port]);
    if (command.includes('MASTER')) {
      this.asked += 1;
      return formatRespList(['config-epoch', String(this.epoch)]);
    }
    if (command.includes('SENTINELS')) return '*0\r\n';
    return '-ERR unknown command\r\n';
  }
}

const formatRespList = (texts: readonly string[]) =>
  `*${texts.length}\r\n${texts.map((text) => `$${text.length}\r\n${text}\r\n`).join('')}`;

function connectBy(sentinels: readonly FakeSentinel[]) {
  const redis = connectRedis({ url: `redis+sentinel://${sentinels.map(({ host }) => host).join(',')}/main` });
  ends.push(() => redis.disconnect());
  return redis;
}

it('closes its connections to the Sentinels when it is closed, also while no primary can be reached', async () => {
  const sentinel = await FakeSentinel.start('redis://127.0.0.1:1', 1);
  const redis = connectBy([sentinel]);
  await expect.poll(() => redis.status).toBe('reconnecting');
  redis.disconnect();
  await expect.poll(() => sentinel.sockets.size).toBe(0);
});

it('opens again when one Sentinel names another primary of a later failover, and not of an earlier one', async () => {
  const [first, second] = [await FakeSentinel.start(testRedisUrl(), 2), await FakeSentinel.start('redis://none:1', 1)];
  const redis = connectBy([first, second]);
  let closes = 0;
  redis.on('close', () => (closes += 1));
  await expect.poll(() => redis.status).toBe('ready');
  await expect.poll(() => Math.min(first.asked, second.asked), { timeout: 10_000 }).toBeGreaterThan(1);
  expect(closes).toBe(0);
  second.epoch = 3;
  await expect.poll(() => closes, { timeout: 10_000 }).toBeGreaterThan(0);
});
