import { Injectable, Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { BroomwagonError, isBroomwagonError, outages } from '@broomwagon/contracts';
import { withoutQuote } from '@broomwagon/engines';
import {
  classifyFailure,
  ControlPlane,
  EngineAdapters,
  EngineCalls,
  type Generated,
  HeldLeases,
  type Lease,
  LeaseAcquirer,
  LeaseReleaser,
  MovableCall,
  toReleaseOutcome,
  unlessAborted,
  WorkerSession,
} from '@broomwagon/generation';
import { reportExperts } from './generation-experts';
import { GatewayConfig } from '../gateway.config';
import { GatewayMetrics } from '../gateway-metrics';
import { runPassed } from './run-passed';
import { TrajectoryRecorder } from './recording/trajectory-recorder';
import {
  asOurs,
  isCuttable,
  isMovable,
  buildLeaseRequest,
  parseAtEnd,
  prepareCall,
  prepareRepeat,
  buildEngineRequest,
} from './continuation';
import { FailureLimit } from './failure-limit';
import { toAbortEnd, endOfAborts, endOfRefusal, toRefusal, stopped } from './generation-ends';
import { GenerationClaims } from './generation-claims';
import type { Generation } from './generation';
import type { GenerationEnd } from './response-parts';
import { ResumePacer } from './resume-pacer';

const TRANSFER_DEADLINE_MS = 5_000;
/** Maximum time for which a continued call delays later ones: an engine prefills 100,000 tokens in less. */
const RESUME_PLACE_MS = 10_000;
/** Maximum time that a failed call waits to learn whether most servers fail. */
const RELEASE_WAIT_MS = 1_000;
/** Refusals of a move after which the lease is still on its server. */
const STAYS = ['SERVER_NOT_FOUND', 'SERVER_NOT_READY', 'SERVER_FULL', 'SERVER_UNSUITABLE', 'POOL_PAUSED'] as const;

/** An ended call, with the lease of its last server. */
interface EndedCall {
  /** End of the generation; absent: it must be continued. */
  end?: GenerationEnd;
  error?: Error;
  /** Abort by the engine. */
  abort?: GenerationEnd;
  lease?: Lease;
  mostServersFail?: boolean;
}

/** Runs generations: acquire, call, release, until the response is complete. */
@Injectable()
export class GenerationRunner {
  private readonly logger = new Logger(GenerationRunner.name);
  private readonly pacer = new ResumePacer(
    this.config.maxStartingResumes,
    this.config.engineFirstTokenTimeoutMs,
    RESUME_PLACE_MS,
    (waiting) => this.metrics.resumesWaiting.set(waiting),
  );

  constructor(
    private readonly session: WorkerSession,
    private readonly acquirer: LeaseAcquirer,
    private readonly releaser: LeaseReleaser,
    private readonly leases: HeldLeases,
    private readonly engines: EngineAdapters,
    private readonly calls: EngineCalls,
    private readonly recorder: TrajectoryRecorder,
    private readonly controlPlane: ControlPlane,
    private readonly claims: GenerationClaims,
    private readonly metrics: GatewayMetrics,
    private readonly config: GatewayConfig,
  ) {}

  /** Runs a generation to its end. Never throws. */
  async run(generation: Generation): Promise<void> {
    let end: GenerationEnd;
    try {
      end = await this.repeat(generation);
      await reportExperts(generation);
    } catch (error) {
      this.logger.error({ id: generation.id, err: error }, 'The generation failed because of a defect');
      end = { reason: 'error', error: new BroomwagonError('INTERNAL', 'The generation failed; see the log') };
    }
    const outcome = end.reason === 'error' ? end.error.code : end.reason;
    if (end.reason === 'error' && outcome.startsWith('ENGINE_') && !outages.explains(end.error)) {
      // Clients do not get the addresses in this message.
      this.logger.warn({ id: generation.id }, `Engines ended the generation: ${withoutQuote(end.error.message)}`);
    }
    this.metrics.generations.inc({ outcome });
    this.metrics.begunAgain.inc(generation.calls.restarts);
    await generation.turnBegun;
    if (generation.restoredEnd === undefined) generation.endTurn(await this.recorder.record(generation, end));
    // The client may repeat its request, or use its id again, as soon as it has received the end.
    await this.claims.end(generation, end);
    generation.finish(end);
  }

  private async repeat(generation: Generation): Promise<GenerationEnd> {
    const failures = new FailureLimit(this.config);
    let mostKept = 0;
    for (;;) {
      const worker = this.session.current() ?? (await unlessAborted(generation.signal, this.session.established()));
      if (worker === undefined) return stopped(generation);
      const refused = await this.claims.take(generation, worker);
      if (refused !== undefined) return { reason: 'error', error: refused };
      if (generation.stoppedBy !== undefined) return stopped(generation);
      if (generation.restoredEnd !== undefined) return generation.restoredEnd;
      // A repeat that another replica answers must not take the turn of the first request.
      if (generation.turnBegun === undefined) generation.beginTurn(this.recorder.begin(generation));
      const call = new MovableCall(worker, { requestId: generation.id });
      call.isMovable = () => isMovable(generation);
      call.isCuttable = () => isCuttable(generation);
      generation.startCall(call);
      // A client that has received nothing can repeat its request.
      const isWaiting = generation.calls.attempts > 0;
      const { deadline, excludedServers } = failures;
      const wanted = buildLeaseRequest(generation, failures.failedServers, excludedServers);
      const limits = { endsWhenFull: !isWaiting, endsWithoutServer: excludedServers !== undefined, deadline };
      const acquisition = await this.acquirer.acquire(call, wanted, limits);
      await generation.turnBegun;
      let end: GenerationEnd | undefined;
      let error: Error | undefined;
      let [abort, lease, mostServersFail]: [GenerationEnd?, Lease?, boolean?] = [];
      if ('lease' in acquisition) {
        if (failures.refusesWrong(acquisition.lease)) {
          void this.releaser.release(call, { leaseId: acquisition.lease.leaseId }, 'aborted', 0);
          generation.endCall();
          continue;
        }
        generation.calls.grant();
        const called = await this.callUnderLease(generation, call, acquisition.lease);
        ({ end, error, abort, lease, mostServersFail } = called);
      } else if (failures.waitsOn(acquisition)) {
        generation.endCall();
        continue;
      } else {
        end = endOfRefusal(generation, failures.explain(acquisition));
      }
      if (end !== undefined) {
        if (error !== undefined) this.logger.warn({ id: generation.id, err: error }, 'The message was not parsed');
        return end;
      }
      generation.endCall();
      if (generation.stoppedBy !== undefined) return stopped(generation);
      const refusal = prepareRepeat(generation, error);
      if (refusal !== undefined) return refusal;
      // Tokens that the response loses when it starts again are no progress.
      const hasProgress = generation.tokens.count > mostKept;
      if (hasProgress) {
        mostKept = generation.tokens.count;
        failures.clear();
      }
      if (lease !== undefined && (error !== undefined || abort !== undefined)) {
        const pauseMs = failures.pauseAfter(error, lease, { hasProgress, mostServersFail });
        if (pauseMs === undefined) return error ? failures.endWith(error) : endOfAborts(generation, abort!);
        if (pauseMs > 0) await delay(pauseMs, undefined, { signal: generation.signal }).catch(() => undefined);
      }
      const cause = abort === undefined ? call.cause : 'engine-abort';
      this.metrics.continued.inc({ cause: error === undefined ? (cause ?? 'refused') : classifyFailure(error) });
    }
  }

  /**
   * Runs a generation on the server of its lease, and after each move on the next server. Without `end`, the generation
   * must be continued.
   */
  private async callUnderLease(generation: Generation, first: MovableCall, granted: Lease): Promise<EndedCall> {
    let [call, lease] = [first, granted];
    for (;;) {
      const engine = this.engines.of(lease);
      const refusal = await prepareCall(generation, engine);
      if (refusal !== undefined) {
        void this.releaser.release(call, { leaseId: lease.leaseId }, 'aborted', 0);
        return { end: refusal };
      }
      const { leaseId } = lease;
      const generated = await this.callEngine(generation, call, lease).catch((defect: unknown) => {
        void this.releaser.release(call, { leaseId }, 'failed', 0);
        throw defect;
      });
      const end = this.findEnd(generation, call, generated);
      const { target } = call;
      if (end === undefined && call.cause === 'move' && target !== undefined && generation.stoppedBy === undefined) {
        const moved = await this.transfer(generation, call, lease);
        if (moved === undefined) {
          void this.releaser.release(call, { leaseId: lease.leaseId }, 'aborted', generated.tokenCount);
          return {};
        }
        const next = call.again(moved !== lease);
        lease = moved;
        this.metrics.continued.inc({ cause: 'move' });
        this.leases.replace(call, next);
        generation.startCall(next);
        if (generation.stoppedBy === undefined && call.isExpired) next.stop('fenced');
        call = next;
        continue;
      }
      const outcome = toReleaseOutcome(generated);
      const released = this.releaser.release(call, { leaseId: lease.leaseId }, outcome, generated.tokenCount);
      if (end !== undefined) return parseAtEnd(generation, engine, end);
      if ('error' in generated) {
        const { error } = generated;
        // A generation that is stopped does not wait for the load-balancer.
        const { signal } = generation;
        const late = delay(RELEASE_WAIT_MS, undefined, { signal, ref: false }).catch(() => undefined);
        return { error, lease, mostServersFail: (await Promise.race([released, late]))?.mostServersFail };
      }
      return { abort: 'stoppedByEngine' in generated ? toAbortEnd(generated) : undefined, lease };
    }
  }

  private async callEngine(generation: Generation, call: MovableCall, lease: Lease): Promise<Generated> {
    const { tokens } = generation;
    const start = tokens.count;
    const isFirst = generation.calls.attempts === 0 && start === 0;
    const begun = isFirst ? undefined : await this.pacer.enter(lease.serverId, call.stopSignal);
    let generated: Generated;
    try {
      generation.calls.start(lease);
      const request = buildEngineRequest(generation, lease);
      if (generation.input.passed !== undefined) {
        const { engineRequestId } = request;
        const onTokens = (count: number) => this.metrics.tokens.inc(count);
        generated = await runPassed(this.calls, call, lease, generation, { engineRequestId, onTokens });
      } else {
        generated = await this.calls.run(call, lease, request, tokens, {
          onTokens: (increment) => {
            if (increment.tokenCount > 0) begun?.();
            this.metrics.tokens.inc(increment.tokenCount);
            generation.receive(increment, start);
          },
          readsAtOnce: () => generation.isWatchedForLess(this.config.streamBurstsAfterMs),
          experts: generation.experts,
          endsAborted: !generation.input.continuesEngineAborts,
        });
      }
    } finally {
      begun?.();
    }
    const { weightVersion } = lease;
    generation.report.takeResult(generated.result, { start, end: tokens.count, weightVersion });
    return generated;
  }

  private findEnd(generation: Generation, call: MovableCall, generated: Generated): GenerationEnd | undefined {
    const { tokens, input } = generation;
    if (tokens.matched !== undefined) return { reason: 'stop', matched: tokens.matched };
    if ('finishReason' in generated) {
      const { finishReason } = generated;
      return finishReason === 'stop' ? { reason: 'stop', matched: generated.result?.stopReason } : { reason: 'length' };
    }
    if (generation.stoppedBy !== undefined) return stopped(generation);
    if ('stopped' in generated) {
      return call.cause === 'abort' ? { reason: 'abort', message: 'Aborted by request.abort' } : undefined;
    }
    if ('stoppedByEngine' in generated) return input.continuesEngineAborts ? undefined : toAbortEnd(generated);
    const { error } = generated;
    return classifyFailure(error) === 'refused' ? { reason: 'error', error: toRefusal(asOurs(error)) } : undefined;
  }

  /**
   * Moves the lease to the target of its call. A refused lease stays on its server.
   * @returns undefined if the server of the lease is unknown
   */
  private async transfer(generation: Generation, call: MovableCall, lease: Lease): Promise<Lease | undefined> {
    const { targetServerId, targetEpoch } = call.target!;
    const body = { ...call.worker, transferId: randomUUID(), leaseId: lease.leaseId, targetServerId, targetEpoch };
    const { signal } = generation;
    try {
      return await this.controlPlane.callWithRetry('lb.transfer', body, { deadlineMs: TRANSFER_DEADLINE_MS, signal });
    } catch (error) {
      this.logger.warn({ ...call.ids, err: error }, 'The lease was not moved');
      return STAYS.some((code) => isBroomwagonError(error, code)) ? lease : undefined;
    }
  }
}
