import { BroomwagonError } from '@broomwagon/contracts';
import type { TrajectoryStore } from '@broomwagon/state';
import { expect, it } from 'vitest';
import { GatewayConfig } from '../gateway.config';
import type { Exchange } from '../http/route';
import { SessionSampling } from './session-sampling';

type Reply = Awaited<ReturnType<TrajectoryStore['sampling']>>;

/** @param replies of the store, one after the other; the last one is repeated */
function begin(...replies: (Reply | BroomwagonError)[]) {
  const asked: object[] = [];
  const sampling = (_: string, args: object) => {
    const reply = replies[Math.min(asked.push(args), replies.length) - 1]!;
    return reply instanceof BroomwagonError ? Promise.reject(reply) : Promise.resolve(reply);
  };
  const config = Object.assign(new GatewayConfig(), { pool: 'p', noServerDeadlineMs: 200 });
  const sessions = new SessionSampling({ sampling } as unknown as TrajectoryStore, config);
  const answer = async (body: object, sessionId?: string) => {
    const exchange = { request: { headers: {} }, caller: { tokenId: 't', sessionId }, body } as unknown as Exchange;
    const bodies: object[] = [];
    await sessions.answer(exchange, {}, ({ body: sent }) => Promise.resolve(void bodies.push(sent)));
    return bodies;
  };
  return { answer, asked };
}

it('a request without a session is answered with its own body, without a call of Redis', async () => {
  const { answer, asked } = begin({ isUsed: true, sampling: { top_k: 1 } });
  const body = { prompt: 'a', session_id: null };
  expect((await answer(body))[0]).toBe(body);
  expect(asked).toEqual([]);
});

it('while no session of the pool has parameters, requests with sessions cost no call of Redis but the first', async () => {
  const { answer, asked } = begin({ isUsed: false });
  const body = { prompt: 'a' };
  for (const session of ['a', 'b', 'a']) expect((await answer(body, session))[0]).toBe(body);
  expect(asked).toHaveLength(1);
});

it('a request of a session waits for Redis, and fails rather than run without the parameters of its session', async () => {
  const down = new BroomwagonError('UNAVAILABLE', 'Redis is down');
  const later = begin(down, down, { isUsed: true, sampling: { top_k: 1 } });
  expect(await later.answer({ prompt: 'a', top_k: 9 }, 's')).toEqual([{ prompt: 'a', top_k: 1 }]);
  await expect(begin(down).answer({ prompt: 'a' }, 's')).rejects.toThrow('Redis is down');
});
