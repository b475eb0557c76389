import { expect, it } from 'vitest';
import { fetchState } from '../../../../lab/engine-simulator/src/test-engine';
import { generate, LONG, useGateway } from '../../../../test/system/gateway-bench';

const system = useGateway(3);
const controls = async () => (await fetchState(system.bench.engine.url)).controls;
const path = '/update_weight_version';

it.each(['1', 'step-1'])('responses of a pause in place go on after a new name of the weights: %s', async (version) => {
  const reply = system.gateway.post('/generate', generate(LONG));
  await system.hasTokens();
  await system.gateway.post('/pause_generation', { mode: 'in_place' });
  const sent = `{"new_version": "${version}", "large": 12345678901234567890}`;
  expect((await system.gateway.post(path, sent)).status).toBe(200);
  expect(await controls()).toEqual([{ path, body: { ...JSON.parse(sent), abort_all_requests: false } }]);
  expect((await system.gateway.post('/continue_generation', {})).status).toBe(200);
  const { status, body, headers } = await reply;
  expect([status, body.meta_info.finish_reason.type, body.output_ids.length]).toEqual([200, 'length', LONG]);
  expect(headers['x-broomwagon-attempts']).toBe('1');
});

it('passes on a field that the trainer has sent, and adds it to an empty body', async () => {
  const sent = { new_version: '1', abort_all_requests: true };
  expect((await system.gateway.post(path, sent)).status).toBe(200);
  expect((await system.gateway.post(path, '')).status).toBe(200);
  expect((await controls()).map(({ body }) => body)).toEqual([sent, { abort_all_requests: false }]);
});
