/** Most characters of the end of a text that is kept apart; a longer end is joined to the text before it. */
const MAX_END = 1_024;

/**
 * A text that grows. V8 copies a joined text whenever a part of it is read, so the end is kept apart: a stream reads
 * only the end.
 */
export class TextLog {
  private whole = '';
  private end = '';

  get length(): number {
    return this.whole.length + this.end.length;
  }

  append(text: string): void {
    this.end += text;
    if (this.end.length <= MAX_END) return;
    // A read makes V8 replace the appended pieces by one text.
    this.end.charCodeAt(0);
    this.whole += this.end;
    this.end = '';
  }

  /** The text from a character on. */
  from(start: number): string {
    const { whole, end } = this;
    return start >= whole.length ? end.slice(start - whole.length) : whole.slice(start) + end;
  }

  /** Removes all characters from an index on. */
  cutAt(length: number): void {
    this.whole = this.from(0).slice(0, length);
    this.end = '';
  }
}
