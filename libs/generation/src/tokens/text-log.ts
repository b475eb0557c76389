/** Characters of the end of a text from which on the end becomes a part. */
const MAX_END = 1_024;

/**
 * A text that grows. V8 copies a joined text whenever a part of it is read, so the text is kept in parts: a stream
 * reads only the end, and a partial save only the parts since the save before.
 */
export class TextLog {
  private parts: string[] = [];
  /** Characters of all parts. */
  private partsLength = 0;
  private end = '';

  get length(): number {
    return this.partsLength + this.end.length;
  }

  append(text: string): void {
    this.end += text;
    if (this.end.length <= MAX_END) return;
    // A read makes V8 replace the appended pieces by one text.
    this.end.charCodeAt(0);
    this.parts.push(this.end);
    this.partsLength += this.end.length;
    this.end = '';
  }

  /** The text from a character on. */
  from(start: number): string {
    let first = this.partsLength;
    if (start >= first) return this.end.slice(start - first);
    let index = this.parts.length;
    while (first > start) first -= this.parts[(index -= 1)]!.length;
    return (this.parts.slice(index).join('') + this.end).slice(start - first);
  }

  /** Removes all characters from an index on. */
  cutAt(length: number): void {
    const whole = this.from(0).slice(0, length);
    this.parts = whole === '' ? [] : [whole];
    this.partsLength = whole.length;
    this.end = '';
  }
}
