import { expect, it } from 'vitest';
import { createError, MemoryPayloadStore } from '../worker.fixture';
import { PayloadGate } from './payload-gate';

it('holds claims back after a store was unavailable, until the store can be written', async () => {
  const payloads = new MemoryPayloadStore();
  const gate = new PayloadGate(payloads);
  const { signal } = new AbortController();
  payloads.checkErrors.push(createError('UNAVAILABLE'));
  await gate.opened(signal);
  expect(payloads.checkErrors).toHaveLength(1);
  gate.close(createError('PAYLOAD_NOT_FOUND'));
  await gate.opened(signal);
  expect(payloads.checkErrors).toHaveLength(1);
  gate.close(createError('UNAVAILABLE'));
  await gate.opened(signal);
  expect(payloads.checkErrors).toEqual([]);
});

it('leaves a full store to the coordinator, and ends with its worker', async () => {
  const payloads = new MemoryPayloadStore();
  const gate = new PayloadGate(payloads);
  gate.close(createError('UNAVAILABLE'));
  payloads.checkErrors.push(createError('PAYLOAD_STORE_FULL'));
  await gate.opened(new AbortController().signal);
  gate.close(createError('UNAVAILABLE'));
  await gate.opened(AbortSignal.abort());
});
