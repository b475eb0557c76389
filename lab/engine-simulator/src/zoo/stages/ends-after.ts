import type { Frame, Stage, StageContext } from '../zoo-entry';

/**
 * Stage that sends other frames in place of the rest of a response after `at` tokens, and takes the request out of the
 * engine. A response of fewer tokens is not changed.
 */
export function endsAfter(build: (context: StageContext, last: Frame & { kind: 'chunk' }) => Frame[]): Stage {
  return (context, send) => {
    let sentTokens = 0;
    let isOver = false;
    return (frame) => {
      if (isOver) return;
      if (frame.kind !== 'chunk' || sentTokens + frame.chunk.tokenCount <= context.at) {
        if (frame.kind === 'chunk') sentTokens += frame.chunk.tokenCount;
        send(frame);
        return;
      }
      isOver = true;
      context.drop();
      for (const ending of build(context, frame)) send(ending);
    };
  };
}
