import { connectRedis } from '@broomwagon/state';
import { testRedisUrl } from '@broomwagon/testing';
import { afterAll, expect, it } from 'vitest';
import { KeySnapshot } from '../../../../libs/state/src/rounds/key-snapshot.fixture';
import type { Reply } from '../../../../test/system/gateway';
import { generate, PROMPT, useGateway } from '../../../../test/system/gateway-bench';

const RECORD = { 'x-broomwagon-trajectory': 'record' };
const TOKENS = { token_ids: PROMPT, sampling_params: { max_tokens: 3 } };

const redis = connectRedis({ url: testRedisUrl() });
const system = useGateway(6, { speed: 20, gateway: { silenceMs: 1 } });
afterAll(() => redis.disconnect());

/** Reads the turn from the headers of an answer, or from its trailers if the body began before the turn had ended. */
function told({ headers, trailers }: Reply): { state: string; number: number; generation: string } {
  const fields = { ...headers, ...trailers } as Record<string, string>;
  const [state, number] = fields['x-broomwagon-trajectory']!.split(':') as [string, string];
  const [generation] = fields['x-broomwagon-stamp']!.split('.') as [string];
  return { state, number: Number(number), generation };
}

// `SILENCE_MS` is so short that whole answers begin before their turns.
it.each<[string, string, object]>([
  ['whole', '/generate', generate(3)],
  ['streamed', '/generate', generate(3, { stream: true })],
  ['of vLLM, streamed', '/inference/v1/generate', { ...TOKENS, stream: true }],
  ['of OpenAI, streamed', '/v1/completions', { prompt: PROMPT, max_tokens: 3, stream: true }],
  ['passed on', '/generate', generate(3, { a_new_field: 1 })],
])('an answer has turn, result and stamp, and no number is given twice after a set-back: %s', async (_, path, body) => {
  const { prefix, pool } = system.bench;
  const root = `${prefix}:{${pool}}`;
  const post = async () => told(await system.gateway.post(`/sessions/s${path}`, body, RECORD));
  const trajectory = async () => (await system.gateway.get('/sessions/s/trajectory')).body;
  // Redis loses the whole session, and then the last turn.
  const snapshots = [await KeySnapshot.of(redis, `${root}:trajectory:`)];
  const turns = [await post()];
  snapshots.push(await KeySnapshot.of(redis, `${root}:trajectory:`));
  turns.push(await post());
  for (const [index, snapshot] of snapshots.toReversed().entries()) {
    await snapshot.restore();
    await redis.hset(`${root}:meta`, 'generationOf', `process ${index}`);
    turns.push(await post());
    const { missing, stamp } = await trajectory();
    expect(missing.map(({ reason }: { reason: string }) => reason)).toContain('SET_BACK');
    expect(stamp.split('.')[0]).toBe(turns.at(-1)!.generation);
  }
  expect(turns.map(({ state }) => state)).toEqual(['recorded', 'recorded', 'recorded', 'recorded']);
  expect(new Set(turns.map(({ number }) => number)).size).toBe(4);
  expect(new Set(turns.map(({ generation }) => generation)).size).toBe(3);
});

it('a new session has a stamp, so that its trainer learns that the session was lost', async () => {
  const { prefix, pool } = system.bench;
  const snapshot = await KeySnapshot.of(redis, `${prefix}:{${pool}}:trajectory:`);
  const { body } = await system.gateway.post('/sessions', { session_id: 's' });
  await snapshot.restore();
  await redis.hset(`${prefix}:{${pool}}:meta`, 'generationOf', 'another process');
  expect((await system.gateway.get('/sessions/s/trajectory')).status).toBe(404);
  const again = await system.gateway.post('/sessions', { session_id: 's' });
  expect(again.body.created).toBe(true);
  expect(again.body.stamp.split('.')[0]).not.toBe(body.stamp.split('.')[0]);
  expect((await system.gateway.get('/sessions/s/trajectory')).body.missing).toMatchObject([{ reason: 'SET_BACK' }]);
});
