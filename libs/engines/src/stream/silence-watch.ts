import { BroomwagonError } from '@broomwagon/contracts';

/** Parts of a deadline. At the end of each part the watch asks whether the engine is paused: then it does not count. */
const PARTS = 4;

/**
 * Bounds the silence of a stream: one deadline until the first token, another between any two later events. Keep-alive
 * comments are silence: the server behind a hung engine continues to send them.
 */
export class SilenceWatch {
  /** Set once a deadline has passed. */
  error?: BroomwagonError;
  private timer: NodeJS.Timeout;
  private speaking = false;
  private events = 0;
  private partsLeft = PARTS;

  constructor(
    firstTokenTimeoutMs: number,
    private readonly stallTimeoutMs: number,
    private readonly onSilence: (error: BroomwagonError) => void,
    private readonly isPaused: () => Promise<boolean> = () => Promise.resolve(false),
  ) {
    this.timer = this.watch(firstTokenTimeoutMs, 'The engine sent nothing');
  }

  /** An event came. */
  heard(hasTokens: boolean): void {
    if (!this.speaking && !hasTokens) return;
    this.events += 1;
    if (this.speaking) {
      this.partsLeft = PARTS;
      this.timer.refresh();
      return;
    }
    this.speaking = true;
    clearInterval(this.timer);
    this.timer = this.watch(this.stallTimeoutMs, 'The engine stopped sending');
  }

  stop(): void {
    clearInterval(this.timer);
    this.events += 1;
  }

  private watch(timeoutMs: number, what: string): NodeJS.Timeout {
    this.partsLeft = PARTS;
    const onPart = async (): Promise<void> => {
      const { events } = this;
      // No answer counts as no pause: the deadline holds.
      const isPaused = await this.isPaused().catch(() => false);
      if (isPaused || events !== this.events || --this.partsLeft > 0) return;
      this.stop();
      this.error = new BroomwagonError('ENGINE_STALLED', `${what} for ${timeoutMs} ms`);
      this.onSilence(this.error);
    };
    return setInterval(() => void onPart(), timeoutMs / PARTS);
  }
}
