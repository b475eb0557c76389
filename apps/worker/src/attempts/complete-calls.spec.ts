import { BroomwagonError, type CompleteRequest, type ErrorCode } from '@broomwagon/contracts';
import { beforeEach, expect, it } from 'vitest';
import { createError, ScriptedControlPlane } from '../worker.fixture';
import { CompleteCalls } from './complete-calls';

const REPLY = { state: 'finished' as const, groupAccepted: false, roundCompleted: false };
let controlPlane: ScriptedControlPlane;
let calls: CompleteCalls;
/** Errors of samples in a message with several. */
let refused: Map<string, BroomwagonError>;

beforeEach(() => {
  controlPlane = new ScriptedControlPlane();
  calls = new CompleteCalls(controlPlane);
  refused = new Map();
  controlPlane
    .on('request.complete', () => REPLY)
    .on('request.complete-many', ({ completes }) => ({
      results: completes.map(({ requestId }) => {
        const error = refused.get(requestId);
        return error === undefined ? REPLY : { error: error.toWire() };
      }),
    }));
});

const build = (index: number, workerEpoch = 'e1'): CompleteRequest => ({
  requestId: `j/g/${index}`,
  attempt: '1-a',
  workerId: 'w',
  workerEpoch,
  finishReason: 'stop',
});
const complete = (index: number, epoch?: string) => calls.complete(build(index, epoch), { deadlineMs: 1_000 });
const operations = () => controlPlane.calls.map(({ operation }) => operation);
const single = () => controlPlane.of('request.complete').map(({ requestId }) => requestId);

it('reports the samples of one turn by one message, and a sample that is alone by its own', async () => {
  expect(await Promise.all([complete(1), complete(2)])).toEqual([REPLY, REPLY]);
  await complete(3);
  const completes = [1, 2].map((index) => {
    const { workerId: _, workerEpoch: _epoch, ...item } = build(index);
    return item;
  });
  expect(controlPlane.calls).toEqual([
    { operation: 'request.complete-many', body: { workerId: 'w', workerEpoch: 'e1', completes } },
    { operation: 'request.complete', body: build(3) },
  ]);
});

it('refuses a sample alone, and repeats a sample that may yet be taken', async () => {
  refused.set('j/g/1', createError('FENCED')).set('j/g/2', createError('UNAVAILABLE'));
  const [fenced, again, taken] = await Promise.allSettled([complete(1), complete(2), complete(3)]);
  expect(fenced).toMatchObject({ reason: { code: 'FENCED' } });
  expect([again, taken]).toMatchObject([{ value: REPLY }, { value: REPLY }]);
  expect(single()).toEqual(['j/g/2']);
});

it.each<ErrorCode>(['UNAVAILABLE', 'TIMEOUT', 'INTERNAL', 'VALIDATION_FAILED', 'FORBIDDEN'])(
  'reports each sample by its own message after %s, and also the next',
  async (code) => {
    controlPlane.on('request.complete-many', () => {
      throw createError(code);
    });
    expect(await Promise.all([complete(1), complete(2)])).toEqual([REPLY, REPLY]);
    await Promise.all([complete(3), complete(4)]);
    expect(operations().filter((name) => name === 'request.complete-many')).toHaveLength(1);
    expect(single()).toEqual([1, 2, 3, 4].map((index) => `j/g/${index}`));
  },
);

it('does not report samples of two epochs together', async () => {
  await Promise.all([complete(1), complete(2, 'e2')]);
  expect(operations()).toEqual(['request.complete', 'request.complete']);
});
