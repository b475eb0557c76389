import type { Stage } from '../zoo-entry';

/**
 * Ends a response at a stop text of its request, as engines do: the token that completes the stop text is the last one.
 * @param withholds whether the last characters of the text are held back while they may be the start of a stop text
 * (vLLM); otherwise they are sent, and only the last chunk lacks the stop text (SGLang with whole texts)
 */
export function stopText({ withholds }: { withholds: boolean }): Stage {
  return ({ call, drop }, send) => {
    const stops = call.stop ?? [];
    if (stops.length === 0) return send;
    const heldLength = withholds && !call.keepsStop ? Math.max(...stops.map((stop) => stop.length)) - 1 : 0;
    let text = '';
    let sentLength = 0;
    let isOver = false;
    return (frame) => {
      // A dropped request may end in the same turn, before the chunk with the stop text is sent.
      if (isOver) return;
      if (frame.kind !== 'chunk') return send(frame);
      const { chunk } = frame;
      const before = text.length;
      text += chunk.text;
      const found = findStop(text, stops, before);
      if (found !== undefined) {
        isOver = true;
        drop();
        chunk.end('stop', found.stop);
        text = text.slice(0, call.keepsStop ? found.end : found.start);
      }
      const end = chunk.reason === undefined ? Math.max(sentLength, text.length - heldLength) : text.length;
      // New text cannot take back sent text, so the chunk has the length of the whole text.
      chunk.text = text.slice(sentLength, end);
      if (end < sentLength) chunk.wholeLength = end;
      sentLength = end;
      send(frame);
      if (found === undefined) return;
      send({ kind: 'done' });
      send({ kind: 'end' });
    };
  };
}

/** Finds the stop text that is complete first, among the stop texts that end after `from`. */
function findStop(
  text: string,
  stops: readonly string[],
  from: number,
): { stop: string; start: number; end: number } | undefined {
  const found = stops
    .map((stop) => ({ stop, start: text.indexOf(stop, Math.max(0, from - stop.length + 1)) }))
    .filter(({ start }) => start !== -1)
    .map(({ stop, start }) => ({ stop, start, end: start + stop.length }));
  return found.toSorted((one, other) => one.end - other.end)[0];
}
