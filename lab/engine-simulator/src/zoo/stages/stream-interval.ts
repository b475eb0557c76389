import type { Chunk } from '../chunk';
import type { Stage } from '../zoo-entry';

/**
 * Collects so many tokens into each chunk; the end is sent at once.
 * @param sendsFirst whether the first token is sent at once, too
 */
export function streamInterval(tokens: number, sendsFirst = true): Stage {
  return (_context, send) => {
    let collected: Chunk | undefined;
    let isFirst = sendsFirst;
    const flush = (): void => {
      if (collected !== undefined) send({ kind: 'chunk', chunk: collected });
      collected = undefined;
    };
    return (frame) => {
      if (frame.kind !== 'chunk') {
        flush();
        return send(frame);
      }
      const { chunk } = frame;
      if (chunk.toolCalls !== undefined) return send(frame);
      if (chunk.isWaitingAbort) flush();
      // The chunk has the collected tokens, too.
      if (chunk.hasAllTokens) collected = undefined;
      if (collected === undefined) collected = chunk;
      else collected.append(chunk);
      if (isFirst || chunk.reason !== undefined || collected.tokenCount >= tokens) flush();
      isFirst = false;
    };
  };
}
