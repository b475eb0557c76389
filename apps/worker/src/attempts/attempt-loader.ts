import { Injectable } from '@nestjs/common';
import {
  BroomwagonError,
  findPromptFault,
  type Claim,
  type Prompt,
  type RequestId,
  type RequestSegmentsReply,
  type RequestSegmentsRequest,
  type Segment,
  type SegmentPayload,
} from '@broomwagon/contracts';
import type { MadeTokens } from '@broomwagon/engines';
import { ControlPlane, unlessAborted } from '@broomwagon/generation';
import { withRetry } from '@broomwagon/messaging';
import { PayloadStore } from '@broomwagon/state';
import { WorkerConfig } from '../worker.config';
import type { Attempt } from './attempt';

/** The prompt and the earlier tokens of an attempt. */
export interface AttemptInput {
  prompt: Prompt;
  /** Tokens of earlier attempts; undefined for a fresh start. */
  made?: MadeTokens & { tokenCount: number };
  /** End of the earlier text that the last segment holds back, since a stop text may begin there. */
  heldText?: string;
}

/** The tokens of an earlier attempt are missing or cannot be read, and must be generated again. */
export class MissingSegmentError extends Error {
  constructor(
    readonly ref: string,
    cause: unknown,
  ) {
    super(`The segment ${ref} cannot be read: ${(cause as Error).message}`, { cause });
    this.name = 'MissingSegmentError';
  }
}

/** Reads the prompt of a request and the tokens of its earlier attempts. */
@Injectable()
export class AttemptLoader {
  /** Running reads of prompts, by reference: the samples of a group are claimed together, and have one prompt. */
  private readonly prompts = new Map<string, Promise<Prompt>>();

  constructor(
    private readonly payloads: PayloadStore,
    private readonly config: WorkerConfig,
    private readonly controlPlane: ControlPlane,
  ) {}

  /**
   * @throws MissingSegmentError with the first segment that is missing or, while prompts can be read, unreadable
   * @throws BroomwagonError PAYLOAD_NOT_FOUND (the prompt), VALIDATION_FAILED (no JSON, or no prompt), UNAVAILABLE
   */
  async load({ claim, signal }: Attempt): Promise<AttemptInput> {
    if (claim.segmentsFollow) claim.segments = await this.readSegments(claim.requestId, signal);
    const [prompt, ...segments] = await Promise.allSettled([
      this.readPrompt(claim.promptRef, signal),
      ...claim.segments.map((segment) => this.read(segment.ref, signal)),
    ]);
    const promptValue = unwrapSettled(prompt);
    const payloads = segments.map((segment, index) => {
      if (segment.status === 'fulfilled') return segment.value as SegmentPayload;
      if (signal.aborted) throw segment.reason;
      throw new MissingSegmentError(claim.segments[index]!.ref, segment.reason);
    });
    return { prompt: promptValue, made: joinSegments(claim, payloads), heldText: payloads.at(-1)?.heldText };
  }

  private async readSegments(requestId: RequestId, signal: AbortSignal): Promise<Segment[]> {
    const deadlineMs = this.config.transitionDeadlineMs;
    const segments: Segment[] = [];
    for (let cursor: number | undefined = 0; cursor !== undefined;) {
      const body: RequestSegmentsRequest = { requestId, cursor };
      const page: RequestSegmentsReply = await this.controlPlane.callWithRetry('request.segments', body, {
        deadlineMs,
        signal,
      });
      segments.push(...page.segments);
      ({ cursor } = page);
    }
    return segments;
  }

  /** Reads a prompt once for all attempts that wait for it. */
  private async readPrompt(ref: string, signal: AbortSignal): Promise<Prompt> {
    let reading = this.prompts.get(ref);
    if (reading === undefined) {
      reading = this.readValid(ref).finally(() => this.prompts.delete(ref));
      this.prompts.set(ref, reading);
    }
    const prompt = await unlessAborted(signal, reading);
    if (prompt === undefined) throw signal.reason;
    return prompt;
  }

  /** Reads a prompt and checks it: nothing else has checked a prompt that its trainer has stored itself. */
  private async readValid(ref: string): Promise<Prompt> {
    const prompt: Prompt = await this.read(ref);
    const fault = findPromptFault(prompt);
    if (!fault) return prompt;
    const reason = `The payload ${ref} is not a prompt: ${fault.field} ${fault.reason}`;
    throw new BroomwagonError('VALIDATION_FAILED', reason);
  }

  private async read(ref: string, signal?: AbortSignal): Promise<object> {
    const deadlineMs = this.config.transitionDeadlineMs;
    const bytes = await withRetry(() => this.payloads.get(ref), { deadlineMs, signal });
    try {
      const value: unknown = JSON.parse(bytes.toString('utf8'));
      if (typeof value === 'object' && value !== null) return value;
    } catch {
      // The error below reports invalid JSON.
    }
    throw new BroomwagonError('VALIDATION_FAILED', `The payload ${ref} is not a JSON object`);
  }
}

function unwrapSettled<T>(settled: PromiseSettledResult<T>): T {
  if (settled.status === 'rejected') throw settled.reason;
  return settled.value;
}

function joinSegments(claim: Claim, payloads: SegmentPayload[]): AttemptInput['made'] {
  if (payloads.length === 0) return undefined;
  const tokenCount = claim.segments.reduce((sum, segment) => sum + segment.tokenCount, 0);
  const parts = payloads.map((payload, index) => ({ payload, segment: claim.segments[index] as Segment }));
  const tokenIds = parts.flatMap(({ payload, segment }) => (payload.tokenIds ?? []).slice(0, segment.tokenCount));
  const hasText = payloads.every((payload) => payload.text !== undefined);
  const { heldText = '' } = payloads.at(-1)!;
  return {
    tokenCount,
    tokenIds: tokenIds.length === tokenCount ? tokenIds : undefined,
    text: hasText ? payloads.map((payload) => payload.text).join('') + heldText : undefined,
  };
}
