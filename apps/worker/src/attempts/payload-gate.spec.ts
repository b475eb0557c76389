import { expect, it } from 'vitest';
import { errorOf, MemoryPayloadStore } from '../worker.fixture';
import { PayloadGate } from './payload-gate';

it('holds claims back after a store was unavailable, until the store can be written', async () => {
  const payloads = new MemoryPayloadStore();
  const gate = new PayloadGate(payloads);
  const { signal } = new AbortController();
  payloads.checkErrors.push(errorOf('UNAVAILABLE'));
  await gate.opened(signal);
  expect(payloads.checkErrors).toHaveLength(1);
  gate.close(errorOf('PAYLOAD_NOT_FOUND'));
  await gate.opened(signal);
  expect(payloads.checkErrors).toHaveLength(1);
  gate.close(errorOf('UNAVAILABLE'));
  await gate.opened(signal);
  expect(payloads.checkErrors).toEqual([]);
});

it('leaves a full store to the coordinator, and ends with its worker', async () => {
  const payloads = new MemoryPayloadStore();
  const gate = new PayloadGate(payloads);
  gate.close(errorOf('UNAVAILABLE'));
  payloads.checkErrors.push(errorOf('PAYLOAD_STORE_FULL'));
  await gate.opened(new AbortController().signal);
  gate.close(errorOf('UNAVAILABLE'));
  await gate.opened(AbortSignal.abort());
});
