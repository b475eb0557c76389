import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type ServerHandle, startRedis, waitUntil } from '@broomwagon/testing';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { createRandom } from '../system/chaos';
import { AT_RANDOM } from './conditions';
import { runSetBack } from './set-back-run';
import { SetBackSystem } from './set-back-system';
import { examplePrompts } from './trainers';

const PROMPTS = examplePrompts(24, 4);
const TIMEOUT_MS = 300_000;
/** Changes of this time after the back-up are lost. */
const LOST_MS = 1_000;

// Takes a minute: `npm run test:faults`.
describe.runIf(process.env.SET_BACK === 'all')(
  'Redis is lost, is used while it is empty, and is restored (docs/operations/backup.md)',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'broomwagon-backup-'));
    const data = join(folder, 'data');
    const [snapshot, payloads] = [join(folder, 'redis.rdb'), join(folder, 'payloads.tar')];
    let redis: ServerHandle;
    let client: Redis;
    let stand: SetBackSystem;
    let arePayloadsFirst = false;

    beforeAll(async () => {
      redis = await startRedis({ folder: data });
      client = new Redis(redis.url);
      client.on('error', () => undefined);
      const setBack = async () => {
        await backUp();
        await delay(LOST_MS);
        await lose();
        await restore();
        return LOST_MS;
      };
      const stop = async () => {
        client.disconnect();
        await redis.stop();
      };
      stand = await SetBackSystem.start({ url: redis.url, setBack, stop }, 'file', PROMPTS);
    }, TIMEOUT_MS);
    afterAll(async () => {
      await stand?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    async function backUp(): Promise<void> {
      // The document uses this command: tar exits with 1 if files came or went meanwhile.
      const copyPayloads = () => tar(['-cf', payloads, '--exclude=.lock', '-C', stand.payloadFolder, '.'], 1);
      if (arePayloadsFirst) copyPayloads();
      // The copies of Redis and of the payloads are this far apart.
      await delay(LOST_MS / 2);
      await client.save();
      cpSync(join(data, 'dump.rdb'), snapshot);
      await delay(LOST_MS / 2);
      if (!arePayloadsFirst) copyPayloads();
    }

    /** Empties Redis, and waits until a worker has registered in it. */
    async function lose(): Promise<void> {
      await redis.kill();
      for (const name of ['appendonlydir', 'dump.rdb']) rmSync(join(data, name), { recursive: true, force: true });
      await redis.restart();
      const { keyPrefix, pool } = stand.system;
      await waitUntil(async () => (await client.zcard(`${keyPrefix}:{${pool}}:workers`)) > 0, {
        what: 'a worker in the empty Redis',
        timeoutMs: 60_000,
      });
    }

    async function restore(): Promise<void> {
      await redis.kill();
      // Services write into the folder meanwhile.
      renameSync(stand.payloadFolder, join(folder, `lost-${randomUUID()}`));
      mkdirSync(stand.payloadFolder, { recursive: true });
      tar(['-xf', payloads, '-C', stand.payloadFolder], 0);
      const files = join(data, 'appendonlydir');
      rmSync(files, { recursive: true, force: true });
      mkdirSync(files);
      cpSync(snapshot, join(files, 'appendonly.aof.1.base.rdb'));
      writeFileSync(join(files, 'appendonly.aof.manifest'), 'file appendonly.aof.1.base.rdb seq 1 type b\n');
      await redis.restart();
    }

    it.each([
      ['before', 'reference'],
      ['after', 'plain'],
    ] as const)(
      'each sample is held and counted once: payloads copied %s Redis, %s trainer',
      async (order, trainer) => {
        arePayloadsFirst = order === 'before';
        const losesPrompts = arePayloadsFirst;
        const moment = { trainer, lostMs: LOST_MS, moment: AT_RANDOM, victim: 'goes on', losesPrompts } as const;
        await runSetBack(stand, moment, PROMPTS, createRandom(21));
      },
      TIMEOUT_MS,
    );
  },
);

function tar(args: readonly string[], mostStatus: number): void {
  const { status, stderr } = spawnSync('tar', args, { encoding: 'utf8' });
  if (status === null || status > mostStatus) throw new Error(`tar has ended with ${status}: ${stderr}`);
}
