import { BroomwagonError } from '@broomwagon/contracts';
import type { GenerationResult, TokenIncrement } from '../engine-adapter';

/** What one event of a stream says. */
export interface StreamStep {
  increment?: TokenIncrement;
  finishReason?: GenerationResult['finishReason'];
  stopReason?: string | number;
  usage?: GenerationResult['usage'];
}

/** Reads the events of one stream of one dialect, in order; may keep state between them. */
export interface ChunkReader {
  read(event: Record<string, unknown>): StreamStep;
}

/**
 * Maps the finish reasons of all dialects; what is none of ours (tool_calls, content_filter, ...) counts as `stop`.
 * ENGINE_ERROR for `error`: vLLM ends a stream so when it failed by itself.
 */
export function finishReasonOf(said: string): GenerationResult['finishReason'] {
  if (said === 'length') return 'length';
  if (said === 'abort' || said === 'aborted' || said === 'cancelled') return 'aborted';
  if (said === 'error') throw new BroomwagonError('ENGINE_ERROR', 'The engine ended the stream with an error');
  return 'stop';
}
