import { randomUUID } from 'node:crypto';

/** Mark in the place of an opaque text while JSON is written; unknown outside of this process. */
const MARK = `opaque-${randomUUID()}-`;
const MARKED = new RegExp(`${MARK}(\\d+)`);

/** Opaque texts found while {@link withOpaqueTexts} writes JSON; undefined while another caller writes JSON. */
let met: OpaqueText[] | undefined;

/** A long text of an answer: the bytes between the quotes of its JSON, which are passed on unread. */
export class OpaqueText {
  constructor(readonly parts: readonly Buffer[]) {}

  get length(): number {
    return this.parts.reduce((sum, { length }) => sum + length, 0);
  }

  /** The mark of the text for {@link withOpaqueTexts}; for other callers the whole text, which costs its length. */
  toJSON(): string {
    if (met === undefined) return JSON.parse(`"${Buffer.concat(this.parts).toString('utf8')}"`) as string;
    return `${MARK}${met.push(this) - 1}`;
  }
}

/**
 * The JSON that a function writes by `JSON.stringify`, with opaque texts as their bytes between the other parts.
 * @returns the text itself if there are no opaque texts
 */
export function withOpaqueTexts(write: () => string): string | (string | Buffer)[] {
  const texts: OpaqueText[] = [];
  met = texts;
  let json: string;
  try {
    json = write();
  } finally {
    met = undefined;
  }
  if (texts.length === 0) return json;
  return json
    .split(MARKED)
    .flatMap<string | Buffer>((part, index) => (index % 2 === 0 ? [part] : texts[Number(part)]!.parts));
}
