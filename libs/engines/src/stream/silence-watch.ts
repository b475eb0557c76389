import { BroomwagonError } from '@broomwagon/contracts';

/**
 * Bounds the silence of a stream: one deadline until the first token, another between any two later events. Keep-alive
 * comments are silence: the server behind a hung engine continues to send them.
 */
export class SilenceWatch {
  /** Set once a deadline has passed. */
  error?: BroomwagonError;
  private timer: NodeJS.Timeout;
  private speaking = false;

  constructor(
    firstTokenTimeoutMs: number,
    private readonly stallTimeoutMs: number,
    private readonly onSilence: (error: BroomwagonError) => void,
  ) {
    this.timer = this.watch(firstTokenTimeoutMs, 'The engine sent nothing');
  }

  /** An event came. */
  heard(hasTokens: boolean): void {
    if (!this.speaking && !hasTokens) return;
    if (this.speaking) {
      this.timer.refresh();
      return;
    }
    this.speaking = true;
    clearTimeout(this.timer);
    this.timer = this.watch(this.stallTimeoutMs, 'The engine stopped sending');
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  private watch(timeoutMs: number, what: string): NodeJS.Timeout {
    return setTimeout(() => {
      this.error = new BroomwagonError('ENGINE_STALLED', `${what} for ${timeoutMs} ms`);
      this.onSilence(this.error);
    }, timeoutMs);
  }
}
