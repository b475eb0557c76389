/** Counts the events of a stream, to tell an engine that sends more of them than it was asked for. */
export class EventSizes {
  private events = 0;
  private tokens = 0;

  take(tokenCount: number): void {
    if (tokenCount === 0) return;
    this.events += 1;
    this.tokens += tokenCount;
  }

  /**
   * Whether the engine sent more than twice the events of this interval. False for a response of few tokens, since text
   * that is withheld, the first token and the end have events of their own.
   */
  isFinerThan(interval: number): boolean {
    const expected = 2 + Math.ceil(this.tokens / interval);
    return this.tokens > 2 * interval && this.events > 2 * expected;
  }
}
