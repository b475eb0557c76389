/** Counts the events of a stream, to tell an engine whose events do not come as it was asked. */
export class EventSizes {
  private events = 0;
  private tokens = 0;

  take(tokenCount: number): void {
    if (tokenCount === 0) return;
    this.events += 1;
    this.tokens += tokenCount;
  }

  /**
   * Mean tokens of an event if they are not as the interval asks: the engine sent more than twice the events, or less
   * than half of them. 0 if the events came as asked; undefined for a response that is too short to tell, since text
   * that is withheld, the first token and the end have events of their own.
   */
  findOther(interval: number): number | undefined {
    if (this.tokens <= 2 * interval) return undefined;
    const expected = Math.ceil(this.tokens / interval);
    const isAsAsked = this.events <= 2 * (expected + 2) && 2 * this.events >= expected;
    return isAsAsked ? 0 : Math.max(1, Math.round(this.tokens / this.events));
  }
}
