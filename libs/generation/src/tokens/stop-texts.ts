/** A stop text, and where it begins. */
export interface FoundStop {
  at: number;
  stop: string;
}

/** The texts that end a response. Engines search for them only in the text that one call generates. */
export class StopTexts {
  private readonly stops: readonly string[];
  /** Characters of the longest stop text. */
  readonly maxLength: number;

  constructor(stops: readonly string[]) {
    this.stops = stops.filter((stop) => stop !== '');
    this.maxLength = Math.max(0, ...this.stops.map(({ length }) => length));
  }

  /** Whether a stop text comes before another in the request. */
  isBefore(one: string, other: string): boolean {
    return this.stops.includes(one) && this.stops.indexOf(one) < this.stops.indexOf(other);
  }

  has(text: unknown): text is string {
    return typeof text === 'string' && this.stops.includes(text);
  }

  /** Length of the longest end of a text with which a stop text may begin. */
  openLength(text: string): number {
    for (let length = Math.min(this.maxLength - 1, text.length); length > 0; length -= 1) {
      const end = text.slice(-length);
      if (this.stops.some((stop) => stop.length > length && stop.startsWith(end))) return length;
    }
    return 0;
  }

  /**
   * The stop text that is complete first, among the stop texts that begin before `cut` and end behind it. If several
   * end at the same character, the first in the request wins, as in engines.
   * @param from index of `text` in the whole text; `cut` and the result are indexes in the whole text
   */
  findAcross(text: string, cut: number, from: number): FoundStop | undefined {
    let found: FoundStop | undefined;
    for (const stop of this.stops) {
      const start = Math.max(from, cut - stop.length + 1);
      const at = text.slice(start - from, cut + stop.length - 1 - from).indexOf(stop);
      if (at >= 0 && (found === undefined || start + at + stop.length < found.at + found.stop.length)) {
        found = { at: start + at, stop };
      }
    }
    return found;
  }

  /**
   * Characters at the end of a text that belong to the stop text that has ended it. An engine that removes the stop
   * text by itself may have streamed its beginning before (SGLang without `no_stop_trim`).
   */
  matchedLength(text: string, stop: string): number {
    for (let length = Math.min(stop.length, text.length); length > 0; length -= 1) {
      if (text.endsWith(stop.slice(0, length))) return length;
    }
    return 0;
  }
}
