import type { Frame, Stage, StageContext } from '../zoo-entry';

/**
 * A stage that sends other frames in place of the rest of a response once `at` tokens are sent, and takes the request
 * out of the engine. A response of fewer tokens ends as it would without the stage.
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
