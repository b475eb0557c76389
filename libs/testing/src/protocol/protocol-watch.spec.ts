import { connect } from 'nats';
import { expect, it } from 'vitest';
import { requestRaw } from '../raw-request';
import { testNatsUrl, testPool } from '../test-pool';
import { ProtocolWatch } from './protocol-watch';

it('continues after NATS has answered a request of another program that no service takes', async () => {
  const { pool } = testPool();
  const watch = await ProtocolWatch.start(testNatsUrl(), pool);
  const nats = await connect({ servers: testNatsUrl() });
  await expect(requestRaw(nats, `nobody.${pool}`)).rejects.toMatchObject({ code: '503' });
  nats.publish(`rollout.v1.${pool}.lb.status`, '{}');
  await nats.flush();
  expect(await watch.stop()).toMatchObject({ mismatches: [], compared: 1 });
  await nats.close();
});
