import { beforeEach, describe, expect, it } from 'vitest';
import {
  type AcquireManyRequest,
  type AcquireRequest,
  BroomwagonError,
  type ErrorCode,
  type ReleaseManyRequest,
} from '@broomwagon/contracts';
import { ControlPlane } from '../holder/control-plane';
import { GatheredLeaseCalls } from './gathered-lease-calls';

const WORKER = { workerId: 'w', workerEpoch: 'e1' };
const SERVER = { epoch: 'e2', endpoint: 'http://127.0.0.1:1', dialect: 'vllm', weightVersion: 5 };
const buildAcquire = (acquireId: string, epoch = 'e1'): AcquireRequest => {
  return { acquireId, requestId: `of-${acquireId}`, waitMs: 20_000, workerId: 'w', workerEpoch: epoch };
};
const buildRelease = (acquireId: string) => ({ acquireId, outcome: 'finished' as const });
const createError = (code: ErrorCode): BroomwagonError => new BroomwagonError(code, code);

describe('GatheredLeaseCalls', () => {
  let sent: [operation: string, body: unknown][];
  /** Answers of `lb.acquire-many` by acquireId, if not a grant. */
  let refused: Map<string, ErrorCode>;
  /** Errors that calls throw, by operation. */
  let failures: Map<string, BroomwagonError>;
  let calls: GatheredLeaseCalls;

  beforeEach(() => {
    [sent, refused, failures] = [[], new Map(), new Map()];
    const answers: Record<string, (body: never) => unknown> = {
      'lb.acquire': ({ acquireId }: AcquireRequest) => ({ ...SERVER, serverId: 's', leaseId: `1.${acquireId}` }),
      'lb.acquire-many': ({ acquires }: AcquireManyRequest) => ({
        servers: { s: SERVER },
        leases: acquires.map(({ acquireId }) => {
          const code = refused.get(acquireId);
          return code === undefined
            ? { acquireId, leaseId: `1.${acquireId}`, serverId: 's', dpRank: 3 }
            : { acquireId, error: createError(code).toWire() };
        }),
      }),
      'lb.release': () => ({ released: true }),
      'lb.release-many': ({ releases }: ReleaseManyRequest) => ({ results: releases.map(() => ({ released: true })) }),
    };
    const call = async (_pool: string, operation: string, body: unknown): Promise<never> => {
      sent.push([operation, body]);
      const failure = failures.get(operation);
      if (failure !== undefined) throw failure;
      return answers[operation]!(body as never) as never;
    };
    calls = new GatheredLeaseCalls(new ControlPlane({ call, callWithRetry: call }, 'test'));
  });
  const operations = (): string[] => sent.map(([operation]) => operation);
  const acquire = (id: string, isRepeat = false, epoch?: string) => {
    const { workerId, workerEpoch, waitMs, ...item } = buildAcquire(id, epoch);
    return calls.acquire({ workerId, workerEpoch }, item, { waitMs: waitMs!, timeoutMs: 22_000, isRepeat });
  };

  it('asks for the servers of one turn by one message, which does not wait', async () => {
    const leases = await Promise.all([acquire('a'), acquire('b')]);
    expect(leases).toEqual(['1.a', '1.b'].map((leaseId) => ({ ...SERVER, leaseId, serverId: 's', dpRank: 3 })));
    const acquires = ['a', 'b'].map((acquireId) => ({ acquireId, requestId: `of-${acquireId}` }));
    expect(sent).toEqual([['lb.acquire-many', { ...WORKER, acquires }]]);
  });

  it('sends a call that is alone in its turn, a repeat, or of another epoch by a message of its own', async () => {
    await acquire('a');
    await Promise.all([acquire('b', true), acquire('c')]);
    await Promise.all([acquire('d'), acquire('e'), acquire('f', false, 'e9')]);
    expect(operations().filter((name) => name === 'lb.acquire-many')).toHaveLength(1);
    const singly = sent.filter(([name]) => name === 'lb.acquire').map(([, body]) => (body as AcquireRequest).acquireId);
    expect(singly).toEqual(['a', 'b', 'c', 'f']);
    await calls.release(buildRelease('a'), 100);
    expect(sent.at(-1)).toEqual(['lb.release', buildRelease('a')]);
  });

  it('lets acquires without room wait, alone, and refuses acquires that fail otherwise', async () => {
    refused.set('full', 'SERVERS_FULL').set('fenced', 'FENCED');
    const [full, fenced, granted] = await Promise.allSettled([acquire('full'), acquire('fenced'), acquire('granted')]);
    expect(full).toMatchObject({ value: { leaseId: '1.full' } });
    expect(fenced).toMatchObject({ reason: { code: 'FENCED' } });
    expect(granted).toMatchObject({ value: { leaseId: '1.granted' } });
    expect(sent.slice(1)).toEqual([['lb.acquire', buildAcquire('full')]]);
    // The pool is full: the next ones would be sent twice.
    await Promise.all([acquire('c'), acquire('d')]);
    expect(operations().slice(2)).toEqual(['lb.acquire', 'lb.acquire']);
  });

  it('releases all of one turn by one message', async () => {
    await Promise.all([calls.release(buildRelease('a'), 100), calls.release(buildRelease('b'), 100)]);
    expect(sent).toEqual([['lb.release-many', { releases: [buildRelease('a'), buildRelease('b')] }]]);
  });

  it.each<[string, ErrorCode]>([
    ['one of them makes the message invalid', 'VALIDATION_FAILED'],
    ['they are too long for a message', 'PAYLOAD_TOO_LARGE'],
    ['the user of NATS may send no message of several', 'FORBIDDEN'],
  ])('sends each singly if %s', async (_, code) => {
    failures.set('lb.acquire-many', createError(code)).set('lb.release-many', createError(code));
    await Promise.all([acquire('a'), acquire('b')]);
    expect(operations()).toEqual(['lb.acquire-many', 'lb.acquire', 'lb.acquire']);
    await Promise.all([calls.release(buildRelease('a'), 100), calls.release(buildRelease('b'), 100)]);
    expect(operations().slice(3)).toEqual(['lb.release-many', 'lb.release', 'lb.release']);
  });

  it('fails all of a message that fails', async () => {
    failures.set('lb.acquire-many', createError('TIMEOUT')).set('lb.release-many', createError('UNAVAILABLE'));
    const releases = [calls.release(buildRelease('a'), 100), calls.release(buildRelease('b'), 100)];
    const ends = await Promise.allSettled([acquire('a'), acquire('b'), ...releases]);
    const codes = ends.map((end) => (end.status === 'rejected' ? (end.reason as BroomwagonError).code : 'none'));
    expect(codes).toEqual(['TIMEOUT', 'TIMEOUT', 'UNAVAILABLE', 'UNAVAILABLE']);
    expect(sent).toHaveLength(2);
  });
});
