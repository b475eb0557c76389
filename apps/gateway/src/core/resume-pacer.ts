import type { StopSignal } from '@broomwagon/engines';
import { unlessAborted } from '@broomwagon/generation';

/**
 * Limits how many continued calls of each engine wait for their first token at the same time. After new weights, or the
 * loss of an engine, all responses are continued at once. Each call sends its prompt and tokens again, and the prefill
 * of these calls delays every other request of the engine.
 */
export class ResumePacer {
  /**
   * For each engine: the number of calls that wait for their first token, and the calls that wait to begin, oldest
   * first.
   */
  private readonly engines = new Map<string, { starting: number; waiting: Set<() => void> }>();

  private waiting = 0;

  /**
   * @param deadlineMs a call that has waited for this time begins beyond the limit: the calls before it may be on an
   * engine that is paused
   * @param placeMs a call that has had no token for this time leaves: its engine may send all tokens at the end
   * @param onWaiting gets the number of calls that wait to begin, after each change
   */
  constructor(
    private readonly limit: number,
    private readonly deadlineMs: number,
    private readonly placeMs: number,
    private readonly onWaiting: (waiting: number) => void,
  ) {}

  /**
   * Waits for a place. Resolves when the call may begin, is stopped, or has waited until the deadline.
   * @returns function to call at the first token and at the end of the call; only its first call has an effect
   */
  async enter(engine: string, signal: StopSignal): Promise<() => void> {
    if (signal.aborted) return () => undefined;
    const entry = this.engines.get(engine) ?? { starting: 0, waiting: new Set() };
    this.engines.set(engine, entry);
    if (entry.starting < this.limit) {
      entry.starting += 1;
      return this.leaving(engine);
    }
    let begin: () => void = () => undefined;
    const turn = new Promise<void>((resolve) => {
      begin = resolve;
      entry.waiting.add(begin);
    });
    this.onWaiting((this.waiting += 1));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, this.deadlineMs)));
    await unlessAborted(signal, Promise.race([turn, late]));
    clearTimeout(timer);
    this.onWaiting((this.waiting -= 1));
    // A call that is still in the queue was stopped or is late, and has no place to give back.
    return entry.waiting.delete(begin) ? () => undefined : this.leaving(engine);
  }

  private leaving(engine: string): () => void {
    let hasLeft = false;
    const leave = (): void => {
      if (hasLeft) return;
      hasLeft = true;
      clearTimeout(timer);
      const entry = this.engines.get(engine)!;
      const [next] = entry.waiting;
      if (next !== undefined) {
        // The next call takes the place over.
        entry.waiting.delete(next);
        next();
      } else {
        entry.starting -= 1;
        if (entry.starting === 0) this.engines.delete(engine);
      }
    };
    const timer = setTimeout(leave, this.placeMs).unref();
    return leave;
  }
}
