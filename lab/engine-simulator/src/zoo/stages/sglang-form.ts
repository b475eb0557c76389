import type { Chunk } from '../chunk';
import type { ChunkForm, Stage } from '../zoo-entry';

/** Gives chunks of `/generate` the form of a release; log probabilities have the form of the ids. */
export function sglangForm({ text, ids }: ChunkForm): Stage {
  return ({ call }, send) => {
    if (call.form !== 'sglang') return send;
    let whole: Chunk | undefined;
    return (frame) => {
      if (frame.kind !== 'chunk') return send(frame);
      const { chunk } = frame;
      if (whole === undefined || chunk.hasAllTokens) whole = chunk.copy();
      else whole.append(chunk);
      if (chunk.wholeLength !== undefined) whole.text = whole.text.slice(0, chunk.wholeLength);
      if (chunk.isWaitingAbort) {
        // Like tokenizer_manager, the chunk has all text and counts, the last id, and all log probabilities.
        chunk.text = whole.text;
        chunk.replaceIds(whole.ids!.slice(-1), whole.meta.output_token_logprobs);
      } else {
        if (text === 'whole') chunk.text = whole.text;
        if (ids === 'whole') chunk.replaceIds([...whole.ids!], whole.meta.output_token_logprobs);
      }
      send(frame);
    };
  };
}
