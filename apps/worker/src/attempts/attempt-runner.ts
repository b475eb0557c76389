import { Injectable, Logger } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import {
  idPart,
  isBroomwagonError,
  LIMITS,
  MAX_FINISH_REASON_LENGTH,
  type EngineFeature,
  type Segment,
} from '@broomwagon/contracts';
import { engineRequestId, modelField, requestedModel, sampleSeed, type GenerationRequest } from '@broomwagon/engines';
import {
  classifyFailure,
  countContextTokens,
  EngineCalls,
  EXPERTS_FIELD,
  type Generated,
  type Lease,
  LeaseAcquirer,
  LeaseReleaser,
  pauseAfterSetbacks,
  RoutedExperts,
  TokenBuffer,
  toReleaseOutcome,
  toSegment,
} from '@broomwagon/generation';
import { inSpan, toSpanAttributes } from '@broomwagon/messaging';
import { failpoint } from '@broomwagon/platform';
import { WorkerConfig } from '../worker.config';
import { WorkerMetrics, type AttemptOutcome } from '../worker-metrics';
import type { Attempt } from './attempt';
import { AttemptLoader, MissingSegmentError, type AttemptInput } from './attempt-loader';
import { AttemptRegistry } from './attempt-registry';
import { AttemptReporter, toEngineAbort, toFailure } from './attempt-reporter';
import { PartialSaver } from './partial-saver';
import { PayloadGate } from './payload-gate';
import { SegmentSaver } from './segment-saver';

/** Maximum time that the report of an end waits for the answer to the release of the lease, milliseconds. */
const RELEASE_HEAD_START_MS = 1_000;
/** Outcomes that are errors of the attempt. */
const FAILED: ReadonlySet<AttemptOutcome> = new Set([
  'engine-error',
  'engine-rejected',
  'payload',
  'payload-full',
  'timeout',
  'lost',
]);

/** Runs one claimed request from its prompt to its end. */
@Injectable()
export class AttemptRunner {
  private readonly logger = new Logger(AttemptRunner.name);
  /**
   * A granted server took no token ids, so later acquires require them. Before that no acquire does: most pools have
   * servers of one kind, and an acquire without constraints is the cheapest.
   */
  private metTextOnly = false;
  /** A granted server had older weights than the round, so later acquires require a weight version. */
  private metStale = false;

  constructor(
    private readonly registry: AttemptRegistry,
    private readonly loader: AttemptLoader,
    private readonly acquirer: LeaseAcquirer,
    private readonly releaser: LeaseReleaser,
    private readonly calls: EngineCalls,
    private readonly partialSaver: PartialSaver,
    private readonly segments: SegmentSaver,
    private readonly reporter: AttemptReporter,
    private readonly gate: PayloadGate,
    private readonly metrics: WorkerMetrics,
    private readonly config: WorkerConfig,
  ) {}

  /** Runs an attempt to its end, and removes it from the registry in any case. Never throws. */
  async run(attempt: Attempt): Promise<AttemptOutcome> {
    let outcome: AttemptOutcome = 'lost';
    this.metrics.running.set(this.registry.size);
    try {
      const { traceparent } = attempt.claim;
      const attributes = toSpanAttributes({ pool: this.config.pool, ...attempt.ids });
      outcome = await inSpan({ traceparent, name: 'attempt', attributes }, async (end) => {
        const ended = await this.perform(attempt);
        end({ 'broomwagon.outcome': ended }, FAILED.has(ended) ? ended : undefined);
        return ended;
      });
    } catch (error) {
      this.logger.error({ ...attempt.ids, err: error }, 'The attempt failed because of a defect');
      outcome = await this.endAfterDefect(attempt, error as Error);
    }
    this.registry.end(attempt);
    this.metrics.running.set(this.registry.size);
    this.metrics.attempts.inc({ outcome });
    return outcome;
  }

  /** Reports a failure of the attempt. A request that always causes the defect fails after some failures. */
  private endAfterDefect(attempt: Attempt, { message }: Error): Promise<AttemptOutcome> {
    // The call changes nothing if the lease was released already.
    void this.releaser.release(attempt, { acquireId: attempt.acquireId }, 'failed');
    return this.reporter.fail(attempt, { reason: 'engine-error', retryable: true, message });
  }

  private async perform(attempt: Attempt): Promise<AttemptOutcome> {
    if (attempt.timeLeftMs === 0) return this.reporter.fail(attempt, { reason: 'timeout', retryable: false });
    let input: AttemptInput;
    try {
      input = await this.loader.load(attempt);
    } catch (error) {
      if (attempt.isStopped) return this.handBack(attempt);
      const missingRef = error instanceof MissingSegmentError ? error.ref : undefined;
      const retryable = missingRef !== undefined || isRetryable(error);
      this.gate.close(missingRef === undefined ? error : (error as Error).cause);
      const { message } = error as Error;
      return this.reporter.fail(attempt, { reason: 'payload', retryable, message, missingRef });
    }
    if (attempt.isStopped) return this.handBack(attempt);
    if ((input.made?.tokenCount ?? 0) >= attempt.claim.maxTokens) {
      return this.reporter.complete(attempt, { finishReason: 'length' }, await this.saveHeldText(attempt, input));
    }

    const hasTokenIds = input.prompt.promptTokenIds !== undefined;
    const needs: EngineFeature[] | undefined = hasTokenIds && this.metTextOnly ? ['tokenIdsIn'] : undefined;
    const { requestId, job, groupId, weightVersion, boundServerId, boundServerEpoch, priority, avoidServers } =
      attempt.claim;
    const wanted = {
      requestId,
      attempt: attempt.claim.attempt,
      // Two jobs of a pool may have groups with the same id.
      groupId: `${idPart(job)}/${idPart(groupId)}`,
      boundServerId,
      boundServerEpoch,
      priority,
      avoidServers,
      contextTokens: countContextTokens(input.prompt, input.made?.tokenCount),
      needs,
      model: requestedModel(input.prompt),
      minWeightVersion: this.metStale ? weightVersion : undefined,
    };
    const acquisition = await this.acquirer.acquire(attempt, wanted, { waitsForModel: true });
    if ('lease' in acquisition) {
      if (acquisition.lease.weightVersion < weightVersion) return this.leaveStale(attempt, acquisition.lease);
      if (hasTokenIds && acquisition.lease.dialect === 'openai') return this.leaveTextOnly(attempt, acquisition.lease);
      return this.runOn(attempt, input, acquisition.lease);
    }
    if (acquisition.failed === 'stopped') return this.handBack(attempt);
    const { failed, error } = acquisition;
    const isUnlisted = isBroomwagonError(error, 'MODEL_NOT_FOUND');
    const message = isUnlisted ? `${modelField(input.prompt)}: ${error.message}` : error?.message;
    if (failed === 'refused')
      return this.reporter.fail(attempt, { reason: 'engine-rejected', retryable: false, message });
    return this.reporter.fail(attempt, { reason: 'no-server', retryable: true, message });
  }

  /**
   * Leaves a server that takes no token ids. The reason `no-server` is no failure of the request. The next attempt
   * requires a server that takes token ids.
   */
  private leaveTextOnly(attempt: Attempt, { leaseId, serverId }: Lease): Promise<AttemptOutcome> {
    this.metTextOnly = true;
    void this.releaser.release(attempt, { leaseId }, 'aborted');
    const message = `${serverId} takes no token ids`;
    return this.reporter.fail(attempt, { reason: 'no-server', retryable: true, message });
  }

  /** Leaves a server with older weights than the round, as {@link leaveTextOnly} does. */
  private async leaveStale(attempt: Attempt, lease: Lease): Promise<AttemptOutcome> {
    this.metStale = true;
    const { leaseId, serverId, weightVersion } = lease;
    void this.releaser.release(attempt, { leaseId }, 'aborted');
    const message = `${serverId} has weight version ${weightVersion}, and ${attempt.claim.weightVersion} is wanted`;
    return this.reporter.fail(attempt, { reason: 'no-server', retryable: true, message });
  }

  private async runOn(attempt: Attempt, input: AttemptInput, lease: Lease): Promise<AttemptOutcome> {
    const tokens = bufferFor(attempt, input);
    const generated = await this.generate(attempt, input, lease, tokens);
    const { tokenCount, unsentTokens = 0 } = generated;
    this.metrics.tokens.inc(tokenCount);

    const outcome = toReleaseOutcome(generated);
    // The lease is released at once, because storing the payload may take long or fail.
    const released = this.releaser.release(attempt, { leaseId: lease.leaseId }, outcome, tokenCount);
    if (attempt.isExpired) return 'fenced';

    let segment: Segment | undefined;
    try {
      segment = await this.saveEnd(attempt, lease, tokens, generated);
    } catch (error) {
      const reason = isBroomwagonError(error, 'PAYLOAD_STORE_FULL') ? 'payload-full' : 'payload';
      const retryable = isRetryable(error);
      this.gate.close(error);
      const { message } = error as Error;
      return this.reporter.fail(attempt, { reason, retryable, lostTokens: tokenCount + unsentTokens, message });
    }
    await failpoint('worker.complete.between-payload-and-complete');
    await Promise.race([released, delay(RELEASE_HEAD_START_MS, undefined, { ref: false })]);
    await failpoint('worker.complete.between-release-and-complete');

    if ('finishReason' in generated) {
      const storeAgain = () => this.saveEnd(attempt, lease, tokens, generated);
      const { finishReason, result } = generated;
      const engineFinishReason = result?.engineFinishReason?.slice(0, MAX_FINISH_REASON_LENGTH);
      return this.reporter.complete(attempt, { finishReason, engineFinishReason }, segment, storeAgain);
    }
    const lostTokens = unsentTokens === 0 ? undefined : Math.min(tokenCount + unsentTokens, LIMITS.maxTokens);
    if ('stopped' in generated) return this.handBack(attempt, segment, lostTokens);
    const failure = 'stoppedByEngine' in generated ? toEngineAbort(lease) : toFailure(generated.error);
    await this.pause(attempt, generated);
    return this.reporter.fail(attempt, { lostTokens, ...failure }, segment);
  }

  /**
   * Delays the report of a failed attempt, because the request is claimed again at once after the report. A stop of the
   * attempt ends the delay.
   */
  private async pause(attempt: Attempt, generated: Generated): Promise<void> {
    const { engineFailurePauseMs: baseMs } = this.config;
    const { setbacks = 0 } = attempt.claim;
    let pauseMs = 0;
    if ('error' in generated) {
      const hasProgress = generated.tokenCount > 0;
      pauseMs = pauseAfterSetbacks(classifyFailure(generated.error), hasProgress ? 1 : setbacks + 1, baseMs);
    } else if (generated.tokenCount === 0) {
      pauseMs = baseMs;
    }
    if (pauseMs > 0) await delay(pauseMs, undefined, { signal: attempt.signal }).catch(() => undefined);
  }

  /** Streams tokens from the engine, with partial saves, until the stream ends for any reason. */
  private async generate(attempt: Attempt, input: AttemptInput, lease: Lease, tokens: TokenBuffer): Promise<Generated> {
    const request = generationRequest(attempt, input);
    const experts = RoutedExperts.of(input.prompt);
    attempt.beginGenerating(lease);
    const saves = this.partialSaver.start(attempt, lease, tokens);
    const timer = this.metrics.generationSeconds.startTimer();
    const { timeLeftMs } = attempt;
    const timeout = timeLeftMs === undefined ? undefined : setTimeout(() => attempt.stop('timeout'), timeLeftMs);
    const generated = await this.calls.run(attempt, lease, request, tokens, {
      experts,
      onTokens: () => attempt.receiveTokens(),
      onStreamEnd: () => {
        clearTimeout(timeout);
        attempt.endGenerating();
        return saves.stop();
      },
    });
    timer({ result: 'finishReason' in generated ? 'finished' : 'error' in generated ? 'failed' : 'aborted' });
    const { result } = generated;
    if (experts === undefined || result === undefined) return generated;
    const rows = await experts.whole((result.usage?.promptTokens ?? 0) + tokens.count);
    if (rows !== undefined) result.engineFields = { ...result.engineFields, [EXPERTS_FIELD]: rows };
    return generated;
  }

  /** Saves the held text of the last segment as a segment without tokens: the response ends with this text. */
  private async saveHeldText(attempt: Attempt, { heldText: text }: AttemptInput): Promise<Segment | undefined> {
    const last = attempt.claim.segments.at(-1);
    if (text === undefined || last === undefined) return undefined;
    const payload = { tokenIds: [], text, logprobs: [] };
    return this.segments.save(attempt, { ...last, epoch: last.serverEpoch }, { tokenCount: 0, payload });
  }

  /** Stores the generated tokens, or the held text of earlier tokens if the response ends with this text. */
  private async saveEnd(
    attempt: Attempt,
    lease: Lease,
    tokens: TokenBuffer,
    generated: Generated,
  ): Promise<Segment | undefined> {
    const made = toSegment(tokens, generated);
    const endsWithText = 'finishReason' in generated && Boolean(made.payload.text);
    return made.tokenCount === 0 && !endsWithText ? undefined : this.segments.save(attempt, lease, made);
  }

  /** Reports a stopped attempt, with the tokens it has generated. */
  private async handBack(attempt: Attempt, segment?: Segment, lostTokens?: number): Promise<AttemptOutcome> {
    const { cause } = attempt;
    if (cause === 'timeout') {
      return this.reporter.fail(attempt, { reason: 'timeout', retryable: false, lostTokens }, segment);
    }
    const reason = cause === 'shutdown' ? 'shutdown' : 'aborted';
    return this.reporter.fail(attempt, { reason, retryable: true, lostTokens, message: cause }, segment);
  }
}

/** An untyped error comes from a store and says nothing about the request, so the request may be tried again. */
function isRetryable(error: unknown): boolean {
  return !isBroomwagonError(error) || error.retryable;
}

function generationRequest({ claim }: Attempt, { prompt, made }: AttemptInput): GenerationRequest {
  const madeTokens = made?.tokenCount ?? 0;
  const seed =
    claim.sampling.seed === undefined ? undefined : sampleSeed(claim.sampling.seed, { ...claim, madeTokens });
  const sampling = seed === undefined ? claim.sampling : { ...claim.sampling, seed };
  const id = engineRequestId(claim.requestId, claim.attempt);
  return { engineRequestId: id, prompt, sampling, maxTokens: claim.maxTokens, clipsBudget: true, made };
}

/**
 * Makes the buffer for the tokens of an attempt. The buffer begins with the held text of earlier tokens, since a stop
 * text may begin there.
 */
function bufferFor({ claim }: Attempt, { prompt: { engineFields = {} }, heldText }: AttemptInput): TokenBuffer {
  const { include_stop_str_in_output: isIncluded, no_stop_trim: isUntrimmed, sampling_params: given } = engineFields;
  const { no_stop_trim: isUntrimmedByParameter } = (given ?? {}) as { no_stop_trim?: unknown };
  const keepsStop = [isIncluded, isUntrimmed, isUntrimmedByParameter].includes(true);
  const buffer = new TokenBuffer(claim.sampling.stop ?? [], keepsStop);
  if (heldText !== undefined) buffer.restore({ text: heldText, tokenCount: 0 });
  return buffer;
}
