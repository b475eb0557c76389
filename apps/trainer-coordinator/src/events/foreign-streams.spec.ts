import { buildPattern } from '@broomwagon/contracts';
import { connectNats, type MessagingConnection } from '@broomwagon/messaging';
import { startNats, type ServerHandle } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ForeignStreamsService } from './foreign-streams.service';

let server: ServerHandle;
let connection: MessagingConnection;
beforeAll(async () => {
  server = await startNats();
  connection = await connectNats({ url: server.url });
});
afterAll(async () => {
  await connection?.close();
  await server?.stop();
});

it('reports a stream over the subjects of requests although no call was made, and no stream of other subjects', async () => {
  const service = new ForeignStreamsService(connection);
  const { streams } = await connection.nats.jetstreamManager();
  await streams.add({ name: 'OTHERS', subjects: ['rollout.v1.*.events.>', 'other.>'] });
  await service.check();
  expect(connection.warning()).toBeUndefined();
  await streams.add({ name: 'RECORDING', subjects: [buildPattern('round.open')] });
  await service.check();
  expect(connection.warning()).toMatch(
    /^Foreign replies to rollout\.v1\.\*\.round\.\*: the JetStream stream RECORDING/,
  );
});
