import { Injectable } from '@nestjs/common';
import { textOfPrompt, type Prompt } from '@broomwagon/contracts';
import type { GenerationRequest, PassedRequest, PassOptions } from '@broomwagon/engines';
import { inSpan } from '@broomwagon/messaging';
import { HolderConfig } from '../holder/holder.config';
import type { Lease } from '../leases/lease-calls';
import type { LeasedCall } from '../leases/leased-call';
import type { TokenCollector } from '../tokens/token-collector';
import { EngineAdapters } from './engine-adapters';
import { passOnEngine, type Passed } from './pass-on-engine';
import { type EngineRunOptions, type Generated, runOnEngine } from './run-on-engine';
import { ServerSigns } from './server-signs';

/**
 * Runs calls on the engines of leases, with the salt of the lease for the prefix cache, and notes what they tell of
 * their servers.
 */
@Injectable()
export class EngineCalls {
  constructor(
    private readonly engines: EngineAdapters,
    private readonly signs: ServerSigns,
    private readonly config: HolderConfig,
  ) {}

  /** Runs one call to its end: afterwards its lease may be released. Never throws. */
  async run(
    call: LeasedCall,
    lease: Lease,
    request: GenerationRequest,
    tokens: TokenCollector,
    options: Omit<EngineRunOptions, 'stopDeadlineMs'>,
  ): Promise<Generated> {
    const engine = this.engines.of(lease);
    const signs = this.signs.begin(lease, countContextTokens(request.prompt, request.made?.tokenCount));
    const span = { serverId: lease.serverId, engineRequestId: request.engineRequestId };
    return inSpan(undefined, 'generate', span, () =>
      runOnEngine(engine, call, { ...request, cacheSalt: lease.cacheSalt }, tokens, {
        ...options,
        onTokens: (increment) => {
          signs.receive(increment.tokenCount);
          options.onTokens?.(increment);
        },
        onStreamEnd: () => {
          signs.end();
          return options.onStreamEnd?.();
        },
        stopDeadlineMs: this.config.transitionDeadlineMs,
      }),
    );
  }

  /** As {@link run}, for a call whose answer is passed on. */
  async pass(
    call: LeasedCall,
    lease: Lease,
    request: PassedRequest,
    onPiece: NonNullable<PassOptions['onPiece']>,
  ): Promise<Passed> {
    const signs = this.signs.begin(lease, undefined);
    const span = { serverId: lease.serverId, engineRequestId: request.engineRequestId };
    const take: PassOptions['onPiece'] = (piece, contentType) => {
      signs.receive(1);
      onPiece(piece, contentType);
    };
    const { transitionDeadlineMs } = this.config;
    const salted = { ...request, cacheSalt: lease.cacheSalt };
    return inSpan(undefined, 'generate', span, () =>
      passOnEngine(this.engines.of(lease), call, salted, take, transitionDeadlineMs),
    );
  }
}

/** Estimated tokens that the engine holds at the start of a call; a text counts one token for four characters. */
export function countContextTokens(prompt: Prompt, madeTokens = 0): number {
  return (prompt.promptTokenIds?.length ?? Math.ceil(textOfPrompt(prompt).length / 4)) + madeTokens;
}
