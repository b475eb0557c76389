import { expect, it } from 'vitest';
import { createError } from '../worker.fixture';
import { startAttempt } from './attempt.fixture';

it.each(['lora_path', 'model'])('names the field %s of an adapter that no engine lists', async (field) => {
  const { run, controlPlane, payloads, attempt } = await startAttempt(() => ({}), { noServerDeadlineMs: 1 });
  const prompt = { text: 'a', engineFields: { [field]: 'my-lora' } };
  payloads.payloads.set(attempt.claim.promptRef, Buffer.from(JSON.stringify(prompt)));
  controlPlane.on('lb.acquire', () => {
    throw createError('MODEL_NOT_FOUND');
  });
  expect(await run()).toBe('no-server');
  expect(controlPlane.of('request.fail')[0]).toMatchObject({
    reason: 'no-server',
    message: `${field}: scripted MODEL_NOT_FOUND`,
  });
});
