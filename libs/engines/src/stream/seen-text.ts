/** A text by its length and a hash of 64 bits: it is added to piece by piece, and takes no memory. */
export class SeenText {
  length = 0;
  private sum = 0;
  private mix = 0;

  add(text: string): void {
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      this.sum = (Math.imul(this.sum, 31) + code) | 0;
      this.mix = Math.imul(this.mix ^ code, 0x01000193);
    }
    this.length += text.length;
  }

  /** Whether this text is a prefix of another text. */
  isPrefix(text: string): boolean {
    if (text.length < this.length) return false;
    const start = new SeenText();
    start.add(text.slice(0, this.length));
    return start.sum === this.sum && start.mix === this.mix;
  }
}
