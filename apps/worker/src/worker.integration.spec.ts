import {
  BroomwagonError,
  type Claim,
  type Epoch,
  type FailRequest,
  type OperationName,
  type ReplyOf,
  type RequestOf,
  buildSubject,
  workerCommandSubject,
} from '@broomwagon/contracts';
import { connectNats, MessagingClient } from '@broomwagon/messaging';
import type { RunningService } from '@broomwagon/platform';
import { openPayloadStore, type PayloadStore } from '@broomwagon/state';
import { flushPrefix, testNatsUrl, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { bootstrapService } from '../../../libs/platform/src/service/bootstrap';
import { StubEngine, type EngineStream } from './stub-engine.fixture';
import { WorkerConfig } from './worker.config';
import { WorkerModule } from './worker.module';

/** Load-balancer and coordinator as responders on their subjects. */
class StubServices {
  readonly bodies: { operation: OperationName; body: object }[] = [];
  constructor(
    private readonly client: MessagingClient,
    private readonly pool: string,
  ) {}

  answer<Name extends OperationName>(
    operation: Name,
    handler: NoInfer<(body: RequestOf<Name>) => ReplyOf<Name> | BroomwagonError>,
  ): void {
    this.client.subscribe(buildSubject(this.pool, operation), (body, { replyTo }) => {
      this.bodies.push({ operation, body });
      const reply = handler(body as RequestOf<Name>);
      if (replyTo !== undefined) this.client.reply(replyTo, reply as object);
    });
  }

  of<Name extends OperationName>(operation: Name): RequestOf<Name>[] {
    return this.bodies.filter((one) => one.operation === operation).map((one) => one.body as RequestOf<Name>);
  }
}

describe('worker on real NATS and Redis', () => {
  let client: MessagingClient;
  let payloads: PayloadStore;
  let engine: StubEngine;
  let service: RunningService<WorkerConfig>;
  let stubs: StubServices;
  let pending: Claim[];
  let epoch: number;
  let fencedEpoch: Epoch;
  let play: (stream: EngineStream, index: number) => void;
  let pool: string;
  const keyPrefix = testPool().pool;

  beforeAll(async () => {
    client = new MessagingClient(await connectNats({ url: testNatsUrl() }));
    payloads = await openPayloadStore({ driver: 'redis', url: testRedisUrl(), dir: '', keyPrefix });
    engine = await StubEngine.start((stream, index) => play(stream, index));
  });
  afterAll(async () => {
    await engine.close();
    await payloads.close();
    await client.connection.close();
    await flushPrefix(testRedisUrl(), `${keyPrefix}:`);
  });

  beforeEach(async () => {
    ({ pool } = testPool());
    pending = [];
    epoch = 0;
    fencedEpoch = '';
    engine.bodies.length = 0;
    engine.disconnected = 0;
    stubs = new StubServices(client, pool);
    const now = () => ({ serverTimeMs: Date.now(), ttlMs: 3_000 });
    const fenced = new BroomwagonError('FENCED', 'expired');
    stubs.answer('worker.register', () => ({ workerEpoch: `e${++epoch}`, ...now() }));
    stubs.answer('worker.heartbeat', ({ workerEpoch, leaseCount, leaseDigest, attemptCount }) =>
      workerEpoch === fencedEpoch ? fenced : { generation: 'a', leaseCount, leaseDigest, attemptCount, ...now() },
    );
    stubs.answer('worker.deregister', () => ({ deregistered: true }));
    stubs.answer('request.claim', ({ max }) => ({ claims: pending.splice(0, max) }));
    stubs.answer('lb.acquire', ({ acquireId }) => ({
      leaseId: `1.${acquireId}`,
      serverId: 's1',
      epoch: 'e1',
      endpoint: engine.url,
      dialect: 'openai',
      model: 'stub',
      weightVersion: 3,
      decision: { policy: 'least-inflight', branch: 'least-loaded', inflight: 1 },
    }));
    stubs.answer('lb.release', () => ({ released: true, reason: 'released' }));
    stubs.answer('request.save-many', ({ saves }) => ({
      results: saves.map(() => ({ action: 'continue', savedTokens: 0 })),
    }));
    stubs.answer('request.complete', () => ({ state: 'finished', groupAccepted: false, roundCompleted: false }));
    stubs.answer('request.fail', () => ({ state: 'pending' }));
    await client.flush();
    const config = Object.assign(new WorkerConfig(), {
      natsUrl: testNatsUrl(),
      redisUrl: testRedisUrl(),
      redisKeyPrefix: keyPrefix,
      logLevel: 'silent',
      pool,
      workerId: 'w1',
      workerTtlMs: 3_000,
      claimWaitMs: 20,
      drainMs: 50,
      engineFailurePauseMs: 1,
    });
    service = await bootstrapService(WorkerModule, {
      app: 'worker',
      config,
      transport: ({ workerId }) => ({ placeholders: { workerId } }),
    });
  });
  afterEach(() => service.close());

  async function submit(requestId: string, attempt = '1-a'): Promise<void> {
    const promptRef = await payloads.put(
      { pool: 'default', job: 'j', owner: 'g', name: 'prompt' },
      Buffer.from('{"text":"Say it:"}'),
    );
    const about = { job: 'j', roundId: 'r', groupId: 'g', sampleIndex: 0, weightVersion: 3, segments: [] };
    pending.push({ requestId, attempt, promptRef, sampling: { temperature: 0.5 }, maxTokens: 50, ...about });
  }
  const fails = () => stubs.of('request.fail') as FailRequest[];

  it('runs a request on the engine and stores its tokens', async () => {
    play = (stream) => {
      for (const text of ['a', 'b', 'c']) stream.token(text);
      stream.finish('stop');
    };
    await submit('j/g/0');
    await expect.poll(() => stubs.of('request.complete')).toHaveLength(1);
    expect(engine.bodies[0]).toMatchObject({ prompt: 'Say it:', max_tokens: 50, temperature: 0.5 });
    const [complete] = stubs.of('request.complete');
    expect(complete).toMatchObject({ requestId: 'j/g/0', attempt: '1-a', workerEpoch: 'e1', finishReason: 'stop' });
    const stored = JSON.parse((await payloads.get(complete!.segment!.ref)).toString('utf8')) as object;
    expect(stored).toEqual({ text: 'abc', engineFinishReason: 'stop' });
    expect(stubs.of('lb.release')[0]).toMatchObject({ outcome: 'finished', tokens: 3 });
  });

  it('stops the stream on a command to its subject, and returns the tokens', async () => {
    play = (stream) => stream.token('x');
    await submit('j/g/1', '2-a');
    await expect.poll(() => engine.bodies).toHaveLength(1);
    const command = { workerEpoch: 'e1', cause: 'cut', attempts: [{ requestId: 'j/g/1', attempt: '2-a' }] };
    client.publish(workerCommandSubject(pool, 'w1', 'abort'), command);
    client.publish(workerCommandSubject(pool, 'w1', 'abort'), command);
    await expect.poll(() => fails()).toHaveLength(1);
    expect(fails()[0]).toMatchObject({ requestId: 'j/g/1', attempt: '2-a', reason: 'aborted' });
    await expect.poll(() => engine.disconnected).toBe(1);
  });

  it('lets an abort win that overtakes its claim', async () => {
    // Waits for the epoch of the worker: commands for another epoch are ignored.
    await expect.poll(() => stubs.of('request.claim').length).toBeGreaterThan(0);
    const command = { workerEpoch: 'e1', cause: 'cut' as const, attempts: [{ requestId: 'j/g/2', attempt: '1-a' }] };
    const reply = await client.request(workerCommandSubject(pool, 'w1', 'abort'), command);
    expect(reply).toEqual({ stopped: 0 });
    await submit('j/g/2');
    await expect.poll(() => fails()).toHaveLength(1);
    expect(fails()[0]).toMatchObject({ reason: 'aborted' });
    expect(engine.bodies).toEqual([]);
  });

  it('hands the tokens of a broken stream back', async () => {
    play = (stream) => {
      stream.token('y');
      setImmediate(() => stream.break());
    };
    await submit('j/g/3');
    await expect.poll(() => fails()).toHaveLength(1);
    expect(fails()[0]).toMatchObject({ reason: 'engine-error', retryable: true });
    expect(stubs.of('lb.release')[0]).toMatchObject({ outcome: 'failed' });
  });

  it('drops everything when its epoch expires, and continues under a new one', async () => {
    play = (stream, index) => (index === 0 ? stream.token('z') : stream.finish('stop'));
    await submit('j/g/4');
    await expect.poll(() => engine.bodies).toHaveLength(1);
    fencedEpoch = 'e1';
    await expect.poll(() => engine.disconnected).toBe(1);
    await submit('j/g/4', '2-a');
    await expect.poll(() => stubs.of('request.complete')).toHaveLength(1);
    expect(stubs.of('request.complete')[0]).toMatchObject({ attempt: '2-a', workerEpoch: 'e2' });
    expect(fails()).toEqual([]);
  });

  it('hands back running requests when it is shut down, and deregisters', async () => {
    play = (stream) => stream.token('w');
    await submit('j/g/5');
    await expect.poll(() => engine.bodies).toHaveLength(1);
    await service.close();
    expect(fails()[0]).toMatchObject({ reason: 'shutdown', retryable: true });
    expect(stubs.of('worker.deregister')).toEqual([{ workerId: 'w1', workerEpoch: 'e1' }]);
  });
});
