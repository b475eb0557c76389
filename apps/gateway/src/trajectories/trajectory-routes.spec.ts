import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ControlPlane } from '@broomwagon/generation';
import type { PayloadStore, TrajectoryStore } from '@broomwagon/state';
import { expect, it } from 'vitest';
import { SessionSampling } from '../answers/session-sampling';
import { GatewayConfig } from '../gateway.config';
import type { Exchange } from '../http/route';
import type { TrajectoryRecorder } from '../core/recording/trajectory-recorder';
import { TrajectoryReader } from './trajectory-reader';
import { TrajectoryRoutes } from './trajectory-routes';

it('throws an error of a payload that is no JSON, and ends the answer in the middle', async () => {
  const about = { sessionId: 's', tokenId: '', job: 'j', createdAtMs: 1 };
  const turn = { turn: 1, id: 'r', ref: 'ref', promptTokens: 1, responseTokens: 1, finishReason: 'stop', weights: [] };
  const trajectories = {
    seenStamp: () => undefined,
    read: () => Promise.resolve({ about, turns: [turn] }),
  } as unknown as TrajectoryStore;
  const payloads = { get: () => Promise.resolve(Buffer.from('{"tokenIds"')) } as unknown as PayloadStore;
  const [recorder, controlPlane] = [{} as TrajectoryRecorder, {} as ControlPlane];
  const config = new GatewayConfig();
  const reader = new TrajectoryReader(trajectories, payloads, config);
  const { routes } = new TrajectoryRoutes(
    recorder,
    reader,
    new SessionSampling(trajectories, config),
    trajectories,
    controlPlane,
    config,
  );
  let thrown: unknown;
  const server = createServer((request: IncomingMessage, response) => {
    const caller = { tokenId: '', role: 'client', sessionId: 's' };
    const exchange = { request, response, caller, body: {} } as unknown as Exchange;
    void Promise.resolve(routes['GET /trajectory']!.answer(exchange)).catch((error: unknown) => (thrown = error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await expect(fetch(`http://127.0.0.1:${port}/`).then((answer) => answer.text())).rejects.toThrow();
  await expect.poll(() => thrown).toBeInstanceOf(SyntaxError);
  server.close();
});
