import { Logger } from '@nestjs/common';
import type { MessageContext } from '@broomwagon/messaging';
import { expect, it, vi } from 'vitest';
import { LoadBalancerConfig } from '../load-balancer.config';
import { WorkerController } from './worker.controller';

it('warns of each new minimum of the times to live that end before a dead link is noticed', async () => {
  const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  const workers = { register: async () => ({}) };
  const none = { add: async () => undefined, soon: () => undefined };
  const parts = [workers, none, none, none, new LoadBalancerConfig()] as unknown as ConstructorParameters<
    typeof WorkerController
  >;
  const controller = new WorkerController(...parts);
  const register = (ttlMs?: number) =>
    controller.register({ workerId: 'w', ttlMs } as never, { pool: 'p' } as MessageContext);
  for (const ttlMs of [undefined, 15_000, 9_000, 9_000, 12_000, 6_000]) await register(ttlMs);
  expect(warn.mock.calls.map(([line]) => /lives for (\d+) ms/.exec(String(line))?.[1])).toEqual(['9000', '6000']);
});
