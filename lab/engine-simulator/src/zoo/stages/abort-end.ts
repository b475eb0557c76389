import type { Chunk } from '../chunk';
import type { Frame, Stage } from '../zoo-entry';

/** Replaces the chunk that ends an aborted request. @param build gets that chunk, and all chunks before it as one */
export function abortEnd(build: (last: Chunk, before: Chunk | undefined) => Frame[]): Stage {
  return (_context, send) => {
    let before: Chunk | undefined;
    let isOver = false;
    return (frame) => {
      if (isOver) return;
      if (frame.kind !== 'chunk') return send(frame);
      const { chunk } = frame;
      if (chunk.reason !== 'abort') {
        if (before === undefined) before = chunk.copy();
        else before.append(chunk);
        return send(frame);
      }
      const frames = build(chunk, before);
      isOver = frames.some(({ kind }) => kind === 'close');
      for (const one of frames) send(one);
    };
  };
}

/** The chunk with all tokens and the text of the response again. */
export function repeatAll(last: Chunk, before: Chunk | undefined): Frame[] {
  if (before === undefined) return [{ kind: 'chunk', chunk: last }];
  const whole = before.copy();
  whole.append(last);
  whole.hasAllTokens = true;
  return [{ kind: 'chunk', chunk: whole }];
}

/** The chunk without the tokens that it counts. */
export const leaveOut = (last: Chunk): Frame[] => [{ kind: 'chunk', chunk: last.empty() }];
