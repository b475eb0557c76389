import { EVENTS_STREAM, eventSubject } from '@broomwagon/contracts';
import { connectNats, readStream } from '@broomwagon/messaging';
import { type RedisHistory, testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NatsCluster } from '../../libs/testing/src/servers/nats-cluster';
import { AT_RANDOM } from '../set-back/conditions';
import { runSetBack } from '../set-back/set-back-run';
import { SetBackSystem } from '../set-back/set-back-system';
import { examplePrompts } from '../set-back/trainers';
import { createRandom } from '../system/chaos';

const PROMPTS = examplePrompts(24, 4);
const TIMEOUT_MS = 300_000;
/** Time between the kill and the restart of a server, longer than the election of a new stream leader. */
const AWAY_MS = 5_000;
const LEADER_DEADLINE_MS = 60_000;

describe('a NATS cluster of three, of which one is killed in the middle of a data set', () => {
  let nats: NatsCluster;
  let stand: SetBackSystem;
  let killed = 0;
  beforeAll(async () => {
    nats = await NatsCluster.start();
    const redis: RedisHistory = {
      url: testRedisUrl(),
      setBack: async () => {
        await nats.killFor(nats.servers[killed++]!, AWAY_MS);
        return 0;
      },
      stop: () => nats.stop(),
    };
    const environment = { NATS_STREAM_REPLICAS: '3' };
    stand = await SetBackSystem.start(redis, 'same', PROMPTS, { natsUrl: nats.url, environment });
  }, TIMEOUT_MS);
  afterAll(() => stand?.stop());

  // Each server once: one of them leads the stream, and clients are connected to each.
  it.each(['reference', 'plain', 'reference'] as const)(
    'each sample is held and counted once, with the %s trainer',
    async (trainer) => {
      const moment = { trainer, lostMs: 0, moment: AT_RANDOM, victim: 'goes on' } as const;
      await runSetBack(stand, moment, PROMPTS, createRandom(11 + killed));
    },
    TIMEOUT_MS,
  );

  it(
    'the stream has all events, once',
    async () => {
      const connection = await connectNats({ url: nats.url });
      const position = { stream: EVENTS_STREAM, subject: eventSubject(stand.system.pool, '>'), from: 1 };
      let sequences: number[] = [];
      const read = async () => {
        sequences = [];
        for await (const { text } of readStream(connection, position, 256)) {
          sequences.push((JSON.parse(text) as { sequence: number }).sequence);
        }
      };
      // The servers may still be electing the leader of the stream.
      await expect.poll(() => read().catch(String), { timeout: LEADER_DEADLINE_MS }).toBeUndefined();
      expect(sequences.length).toBeGreaterThan(3 * PROMPTS.length);
      expect(sequences).toEqual(sequences.map((_, index) => index + 1));
      await connection.close();
    },
    TIMEOUT_MS,
  );
});
