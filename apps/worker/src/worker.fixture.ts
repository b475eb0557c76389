import { setImmediate as nextTurn } from 'node:timers/promises';
import { Logger, Module } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  BroomwagonError,
  type Claim,
  type ErrorCode,
  type LeaseGrant,
  type OperationName,
  type ReplyOf,
  type RequestOf,
  type SaveItem,
} from '@broomwagon/contracts';
import type { EngineAdapter, GenerateOptions, GenerationRequest, GenerationResult } from '@broomwagon/engines';
import { ControlPlane, EngineAdapters } from '@broomwagon/generation';
import { TypedClient, withRetry, type RetryOptions } from '@broomwagon/messaging';
import { HealthRegistry, Metrics } from '@broomwagon/platform';
import { PayloadStore, type PayloadName } from '@broomwagon/state';
import { PoolPause } from '../../../libs/generation/src/engine/pool-pause';
import { formatPayloadRef, parsePayloadRef } from '../../../libs/state/src/payload/payload-ref';
import { WorkerConfig } from './worker.config';
import { WorkerModule } from './worker.module';

type Handler<Name extends OperationName> = (body: RequestOf<Name>) => ReplyOf<Name> | Promise<ReplyOf<Name>>;

/**
 * Load-balancer and coordinator as a table of answers; records every call. As with NATS, an answer comes in a later turn
 * of the event loop: a caller that asks again at once must not keep all others from their turn.
 */
export class ScriptedControlPlane extends ControlPlane {
  readonly calls: { operation: OperationName; body: object }[] = [];
  private readonly handlers = new Map<OperationName, (body: never) => unknown>();

  constructor() {
    super(undefined as unknown as TypedClient, 'test');
  }

  on<Name extends OperationName>(operation: Name, handler: NoInfer<Handler<Name>>): this {
    this.handlers.set(operation, handler as (body: never) => unknown);
    return this;
  }

  of<Name extends OperationName>(operation: Name): RequestOf<Name>[] {
    return this.calls.filter((call) => call.operation === operation).map((call) => call.body as RequestOf<Name>);
  }

  override async call<Name extends OperationName>(operation: Name, body: RequestOf<Name>): Promise<ReplyOf<Name>> {
    this.calls.push({ operation, body });
    const handler = this.handlers.get(operation);
    if (handler === undefined) throw new BroomwagonError('VALIDATION_FAILED', `No answer scripted for ${operation}`);
    try {
      return (await handler(body as never)) as ReplyOf<Name>;
    } finally {
      await nextTurn();
    }
  }

  override callWithRetry<Name extends OperationName>(
    operation: Name,
    body: RequestOf<Name>,
    options: RetryOptions,
  ): Promise<ReplyOf<Name>> {
    return withRetry(() => this.call(operation, body), { ...options, baseDelayMs: 1, maxDelayMs: 5 });
  }
}

/** Payloads in a map. */
export class MemoryPayloadStore extends PayloadStore {
  readonly payloads = new Map<string, Buffer>();
  /** Errors that the next puts throw, in order. */
  readonly putErrors: Error[] = [];
  /** Errors that the next checks whether the store can be written throw, in order. */
  readonly checkErrors: Error[] = [];
  /** References whose reads fail. */
  readonly getErrors = new Map<string, Error>();

  override async put(payload: PayloadName, bytes: Buffer): Promise<string> {
    const error = this.putErrors.shift();
    if (error !== undefined) throw error;
    const ref = formatPayloadRef('redis', payload);
    this.payloads.set(ref, bytes);
    return ref;
  }
  override async get(ref: string): Promise<Buffer> {
    const error = this.getErrors.get(ref);
    if (error !== undefined) throw error;
    const bytes = this.payloads.get(ref);
    if (bytes === undefined) throw new BroomwagonError('PAYLOAD_NOT_FOUND', ref);
    return bytes;
  }
  json(ref: string): unknown {
    return JSON.parse(String(this.payloads.get(ref)));
  }
  /** Names of the payloads of an owner, without the random part. */
  listNames(owner: string): string[] {
    const names = [...this.payloads.keys()].map((ref) => parsePayloadRef('redis', ref));
    return names.filter((payload) => payload.owner === owner).map(({ name }) => name.replace(/\.[0-9a-f]{8}$/, ''));
  }
  async checkWritable(): Promise<void> {
    const error = this.checkErrors.shift();
    if (error !== undefined) throw error;
  }
  protected readonly driver = 'redis';
  protected find = unused;
  protected writeAll = unused;
  protected writeChunk = unused;
  protected setFreed = unused;
  protected removePage = unused;
  nowMs = unused;
  protected eachOld = unused;
  protected touch = unused;
  countAll = unused;
  usedBy = unused;
  adopt = unused;
  usage = unused;
  removeAll = unused;
  async close(): Promise<void> {}
}

function unused(): never {
  throw new Error('not used by the worker');
}

type Generate = (request: GenerationRequest, options: GenerateOptions) => Promise<GenerationResult>;

/** Engines whose streams are all played by the test. */
export class ScriptedEngines extends EngineAdapters {
  readonly requests: GenerationRequest[] = [];
  readonly options: GenerateOptions[] = [];
  readonly aborts: string[] = [];
  /** Errors that the next aborts by id throw, in order. */
  readonly abortErrors: Error[] = [];
  generate: Generate = async () => ({ tokenIds: [1, 2, 3], text: 'abc', tokenCount: 3, finishReason: 'stop' });

  override of(): EngineAdapter {
    const generate: Generate = (request, options) => {
      this.requests.push(request);
      this.options.push(options);
      return this.stream(request, options);
    };
    const abort = async (id: string): Promise<boolean> => {
      this.aborts.push(id);
      const error = this.abortErrors.shift();
      if (error !== undefined) throw error;
      return true;
    };
    return { generate, abort } as unknown as EngineAdapter;
  }

  /** Tokens of a result that were not streamed are streamed before its end, as every adapter does. */
  private async stream(request: GenerationRequest, options: GenerateOptions): Promise<GenerationResult> {
    let streamed = 0;
    const onTokens: GenerateOptions['onTokens'] = (increment) => {
      streamed += increment.tokenCount;
      options.onTokens?.(increment);
    };
    const result = await this.generate(request, { ...options, onTokens });
    const { tokenIds, text, tokenCount, logprobs, finishReason } = result;
    const isLast = finishReason === 'aborted' ? undefined : true;
    if (streamed === 0) onTokens({ tokenIds, text, tokenCount, logprobs, isLast });
    return result;
  }
}

/** Streams these tokens, then waits to be stopped. */
export function streamUntilStopped(tokenIds: number[], onStarted: () => void = () => undefined): Generate {
  return (_, { signal, onTokens }) =>
    new Promise((resolve) => {
      const text = tokenIds.map(String).join('');
      onTokens?.({ tokenIds, text, tokenCount: tokenIds.length });
      const result = { tokenIds, text, tokenCount: tokenIds.length, finishReason: 'aborted' as const };
      signal?.addEventListener('abort', () => resolve(result));
      if (signal?.aborted) resolve(result);
      onStarted();
    });
}

export const LEASE: LeaseGrant = {
  leaseId: '7.acquire',
  serverId: 's1',
  epoch: 'e2',
  endpoint: 'http://127.0.0.1:1',
  dialect: 'vllm',
  weightVersion: 5,
  decision: { policy: 'least-inflight', branch: 'least-loaded', inflight: 1 },
};
export const WORKER = { workerId: 'w1', workerEpoch: 'e3' };

/** A worker whose control plane, payloads and engines are played by the test. */
export interface WorkerBench {
  module: TestingModule;
  controlPlane: ScriptedControlPlane;
  payloads: MemoryPayloadStore;
  engines: ScriptedEngines;
  /** A claim whose prompt is in the store. */
  claim(changes?: Partial<Claim>): Claim;
}

export async function workerBench(settings: Partial<WorkerConfig> = {}): Promise<WorkerBench> {
  const config = Object.assign(new WorkerConfig(), { ...WORKER, pool: 'test', engineFailurePauseMs: 1 }, settings);
  const controlPlane = new ScriptedControlPlane();
  const payloads = new MemoryPayloadStore();
  const engines = new ScriptedEngines(config, new PoolPause(controlPlane));
  const platform = [
    { provide: WorkerConfig, useValue: config },
    { provide: TypedClient, useValue: {} },
    { provide: Metrics, useValue: new Metrics('worker') },
    { provide: HealthRegistry, useValue: { addReadiness: () => undefined } },
  ];
  @Module({ providers: platform, exports: platform.map(({ provide }) => provide) })
  class PlatformStub {}
  Logger.overrideLogger(false);
  const module = await Test.createTestingModule({
    imports: [{ module: PlatformStub, global: true }, WorkerModule],
  })
    .overrideProvider(ControlPlane)
    .useValue(controlPlane)
    .overrideProvider(PayloadStore)
    .useValue(payloads)
    .overrideProvider(EngineAdapters)
    .useValue(engines)
    .compile();
  controlPlane
    .on('worker.register', () => ({ workerEpoch: WORKER.workerEpoch, ttlMs: 15_000, serverTimeMs: Date.now() }))
    .on('worker.deregister', () => ({ deregistered: true }))
    .on('lb.acquire', ({ acquireId }) => ({ ...LEASE, leaseId: `7.${acquireId}` }))
    .on('lb.release', () => ({ released: true, reason: 'released' }))
    .on('request.save', () => ({ action: 'continue' }))
    .on('request.save-many', async ({ workerId, workerEpoch, saves }) => {
      const saveOne = async ({ savedTokens = 0, ...save }: SaveItem) => {
        try {
          const reply = await controlPlane.call('request.save', { workerId, workerEpoch, ...save });
          return { ...reply, savedTokens: savedTokens + (save.segment?.tokenCount ?? 0) };
        } catch (error) {
          return { error: (error as BroomwagonError).toWire() };
        }
      };
      return { results: await Promise.all(saves.map(saveOne)) };
    })
    .on('request.complete', () => ({ state: 'finished', groupAccepted: false, roundCompleted: false }))
    .on('request.fail', () => ({ state: 'pending' }));
  const promptRef = await payloads.put(
    { pool: 'default', job: 'j', owner: 'g', name: 'prompt' },
    Buffer.from('{"promptTokenIds":[10,11]}'),
  );
  const claim = (changes: Partial<Claim> = {}): Claim => ({
    requestId: 'j/g/0',
    attempt: '1-a',
    job: 'j',
    roundId: 'r1',
    groupId: 'g',
    sampleIndex: 0,
    promptRef,
    sampling: {},
    maxTokens: 100,
    weightVersion: 5,
    segments: [],
    ...changes,
  });
  return { module, controlPlane, payloads, engines, claim };
}

/** A BroomwagonError with this code. */
export function createError(code: ErrorCode): BroomwagonError {
  return new BroomwagonError(code, `scripted ${code}`);
}
