import { BroomwagonError } from '@broomwagon/contracts';
import type { EngineAdapter } from '@broomwagon/engines';
import { Metrics } from '@broomwagon/platform';
import type { SessionClose, SessionStore } from '@broomwagon/state';
import { expect, it } from 'vitest';
import { TestEngineHealth } from '../engine.fixture';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { SessionClosesService } from './session-closes.service';

const close = (sessionId: string): SessionClose => {
  return { sessionId, entry: `entry of ${sessionId}`, serverId: 's', endpoint: 'http://e', dialect: 'sglang' };
};

it('confirms sessions that engines have closed, or have no route to close, and no session whose call failed', async () => {
  const pages = [[close('a'), close('down'), close('old')], [close('%C3%BC')], []];
  const confirmed: string[][] = [];
  const store = {
    close: (_pool: string, request: { notified: string[] }) => {
      confirmed.push(request.notified);
      return Promise.resolve({ closes: pages[confirmed.length - 1]!, more: false });
    },
  } as unknown as SessionStore;
  const called: string[] = [];
  const engines = new (class extends TestEngineHealth {
    override getAdapter(): EngineAdapter {
      const closeSession = (sessionId: string): Promise<void> => {
        called.push(sessionId);
        if (sessionId === 'down') return Promise.reject(new BroomwagonError('ENGINE_UNREACHABLE', 'no answer'));
        if (sessionId === 'old') return Promise.reject(new BroomwagonError('ENGINE_REJECTED', 'no route'));
        return Promise.resolve();
      };
      return { closeSession } as unknown as EngineAdapter;
    }
  })();
  await new SessionClosesService(store, engines, new LoadBalancerMetrics(new Metrics('test'))).closeEnded('pool');
  expect(called).toEqual(['a', 'down', 'old', 'ü']);
  expect(confirmed).toEqual([[], ['entry of a', 'entry of old'], ['entry of %C3%BC']]);
});
