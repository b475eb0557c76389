import { Injectable, Logger } from '@nestjs/common';
import {
  isBroomwagonError,
  outages,
  textOfPrompt,
  type Epoch,
  type Prompt,
  type ServerId,
} from '@broomwagon/contracts';
import { type GenerationRequest, type PassedRequest, type PassOptions, withoutQuote } from '@broomwagon/engines';
import { inSpan } from '@broomwagon/messaging';
import { takeExperts, EXPERTS_FIELD, type RoutedExperts } from '../experts/routed-experts';
import { HolderConfig } from '../holder/holder.config';
import { HolderMetrics } from '../holder/holder-metrics';
import type { Lease } from '../leases/lease-calls';
import type { LeasedCall } from '../leases/leased-call';
import type { TokenBuffer } from '../tokens/token-buffer';
import { EngineAdapters } from './engine-adapters';
import { passOnEngine, type Passed } from './pass-on-engine';
import { type EngineRunOptions, type Generated, runOnEngine } from './run-on-engine';
import { ServerSigns } from './server-signs';
import { endGenerationSpan, getErrorType, toGenerationSpan } from './generation-span';

export interface CallOptions extends Omit<
  EngineRunOptions,
  'stopDeadlineMs' | 'opaqueField' | 'onUncheckedText' | 'onEventSizes'
> {
  /** Routed experts of the response, if they were asked for; the experts of the call are added. */
  experts?: RoutedExperts;
}

/**
 * Runs calls on the engines of leases, with the salt of the lease for the prefix cache. Notes signs of life and
 * failures of the servers.
 */
@Injectable()
export class EngineCalls {
  private readonly logger = new Logger(EngineCalls.name);
  /** Epoch of each server whose engine ignored the interval. */
  private readonly fineServers = new Map<ServerId, Epoch>();

  constructor(
    private readonly engines: EngineAdapters,
    private readonly signs: ServerSigns,
    private readonly metrics: HolderMetrics,
    private readonly config: HolderConfig,
  ) {}

  /**
   * Runs one call, which begins or continues a response, to its end. Then the lease may be released, and `tokens` and
   * `experts` have the output of the call, whatever ended it.
   */
  async run(
    call: LeasedCall,
    lease: Lease,
    request: GenerationRequest,
    tokens: TokenBuffer,
    { experts, onTokens, onStreamEnd, readsAtOnce, endsAborted }: CallOptions,
  ): Promise<Generated> {
    const engine = this.engines.of(lease);
    const { dialect } = lease;
    const start = tokens.count;
    const from = experts?.nextRow(dialect) ?? 0;
    const signs = this.signs.begin(lease, countContextTokens(request.prompt, request.made?.tokenCount));
    const span = toGenerationSpan(lease, this.config.pool, request);
    const { cacheSalt } = lease;
    // An engine takes the interval at the start of a call only.
    const streamInterval = readsAtOnce?.() ? 1 : (lease.streamInterval ?? this.config.streamInterval);
    const prompt = experts === undefined ? request.prompt : experts.ask(request.prompt, dialect);
    let untilFirstToken: (() => void) | undefined = this.metrics.firstTokenSeconds.startTimer();
    const generated = await inSpan(span, async (end) => {
      const ended = await runOnEngine(
        engine,
        call,
        Object.assign({}, request, { prompt, cacheSalt, streamInterval }),
        tokens,
        {
          readsAtOnce,
          endsAborted,
          opaqueField: experts && EXPERTS_FIELD,
          onUncheckedText: () => this.metrics.uncheckedTexts.inc(),
          onEventSizes: (tokens, interval) => {
            signs.noteInterval(tokens);
            if (tokens > 0 && tokens < interval) this.noteFineEvents(lease);
          },
          onTokens: (increment) => {
            if (increment.tokenCount > 0) {
              untilFirstToken?.();
              untilFirstToken = undefined;
            }
            signs.receive(increment.tokenCount);
            onTokens?.(increment);
          },
          onStreamEnd: () => {
            signs.end();
            return onStreamEnd?.();
          },
          stopDeadlineMs: this.config.transitionDeadlineMs,
        },
      );
      endGenerationSpan(end, ended);
      return ended;
    });
    noteEngine(lease, 'error' in generated ? generated.error : undefined);
    const { unsentTokens = 0 } = generated;
    if (unsentTokens > 0)
      this.metrics.unsentTokens.inc({ cause: 'error' in generated ? 'failed' : 'stopped' }, unsentTokens);
    if (experts !== undefined) takeExperts(experts, generated.result, tokens.count - start, from);
    return generated;
  }

  /** Counts a call whose engine ignored the interval, and logs the first such call of each start of an engine. */
  private noteFineEvents({ serverId, epoch }: Lease): void {
    this.metrics.fineStreams.inc();
    if (this.fineServers.get(serverId) === epoch) return;
    this.fineServers.set(serverId, epoch);
    this.logger.warn(
      { serverId },
      'The engine sends far more events than it is asked for: start it with --stream-interval',
    );
  }

  /** Runs a call under a lease, and passes the answer of the engine on unchanged. */
  async pass(
    call: LeasedCall,
    lease: Lease,
    request: PassedRequest,
    onPiece: NonNullable<PassOptions['onPiece']>,
  ): Promise<Passed> {
    const signs = this.signs.begin(lease, undefined);
    const span = toGenerationSpan(lease, this.config.pool, request);
    const take: PassOptions['onPiece'] = (piece, contentType) => {
      signs.receive(1);
      onPiece(piece, contentType);
    };
    const { transitionDeadlineMs } = this.config;
    const salted = Object.assign({}, request, { cacheSalt: lease.cacheSalt });
    const passed = await inSpan(span, async (end) => {
      const ended = await passOnEngine(this.engines.of(lease), call, salted, take, transitionDeadlineMs);
      if ('error' in ended) end({}, getErrorType(ended.error));
      return ended;
    });
    noteEngine(lease, 'error' in passed ? passed.error : undefined);
    return passed;
  }
}

/** Notes the outage of an engine that does not answer, and its end: a call that ended without an error. */
function noteEngine({ serverId, endpoint }: Lease, error: Error | undefined): void {
  const name = `engine ${serverId} at ${endpoint}`;
  if (error === undefined) outages.end(name);
  else if (isBroomwagonError(error, 'ENGINE_UNREACHABLE') || isBroomwagonError(error, 'ENGINE_STALLED'))
    outages.begin({ name, ids: { serverId }, isLeaf: true }, `${error.code}: ${withoutQuote(error.message)}`);
}

/** Estimated tokens that the engine holds at the start of a call; a text counts one token for four characters. */
export function countContextTokens(prompt: Prompt, madeTokens = 0): number {
  return (prompt.promptTokenIds?.length ?? Math.ceil(textOfPrompt(prompt).length / 4)) + madeTokens;
}
