import type { ToolCallDelta } from '../chunk';
import type { Stage } from '../zoo-entry';

/** Call that the behaviours add before the call of the simulator. */
const ADDED_CALL = { id: 'call-added', type: 'function', function: { name: 'added', arguments: '{"added":1}' } };

/** Adds a call before the call of the response, and gives each piece of both calls an index. */
export function twoToolCalls(indexOf: (call: 0 | 1, piece: number) => number | null | undefined): Stage {
  return ({ call }, send) => {
    if (call.tool === undefined || !call.stream) return send;
    let pieces = 0;
    const withIndex = (delta: ToolCallDelta, which: 0 | 1, piece: number): ToolCallDelta => {
      const { index: _, ...others } = delta;
      const index = indexOf(which, piece);
      return index === undefined ? others : { index, ...others };
    };
    return (frame) => {
      if (frame.kind !== 'chunk' || frame.chunk.toolCalls === undefined) return send(frame);
      const { chunk } = frame;
      if (pieces === 0) {
        const added = chunk.empty();
        added.end(undefined);
        added.toolCalls = [withIndex(ADDED_CALL, 0, 0)];
        send({ kind: 'chunk', chunk: added });
      }
      chunk.toolCalls = chunk.toolCalls!.map((delta) => withIndex(delta, 1, pieces));
      pieces += 1;
      send(frame);
    };
  };
}

/** Sends the finish reason in a chunk before the last arguments of a tool call. */
export const finishBeforeArguments: Stage = ({ call }, send) => {
  if (call.tool === undefined) return send;
  return (frame) => {
    if (frame.kind !== 'chunk' || frame.chunk.reason === undefined || frame.chunk.toolCalls === undefined) {
      return send(frame);
    }
    const early = frame.chunk.empty();
    frame.chunk.end(undefined);
    send({ kind: 'chunk', chunk: early });
    send(frame);
  };
};
