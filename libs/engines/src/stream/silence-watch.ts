import { BroomwagonError } from '@broomwagon/contracts';

/**
 * Parts of a deadline. At the end of each part the watch asks whether events came, and whether the engine is paused.
 */
const PARTS = 4;

/**
 * Bounds the silence of a stream: one deadline until the first token, another deadline between any two later events.
 * Time in which the engine is paused does not count. Keep-alive comments are silence: the server of a hung engine
 * continues to send them. A silence is found up to one part after its deadline, since a timer for each event would cost
 * more.
 */
export class SilenceWatch {
  /** Set once a deadline has passed. */
  error?: BroomwagonError;
  private timer: NodeJS.Timeout;
  private speaking = false;
  private events = 0;

  constructor(
    firstTokenTimeoutMs: number,
    private readonly stallTimeoutMs: number,
    private readonly onSilence: (error: BroomwagonError) => void,
    private readonly isPaused: () => Promise<boolean> = () => Promise.resolve(false),
  ) {
    this.timer = this.watch(firstTokenTimeoutMs, 'The engine sent nothing');
  }

  heard(hasTokens: boolean): void {
    if (!this.speaking && !hasTokens) return;
    this.events += 1;
    if (this.speaking) return;
    this.speaking = true;
    clearInterval(this.timer);
    this.timer = this.watch(this.stallTimeoutMs, 'The engine stopped sending');
  }

  stop(): void {
    clearInterval(this.timer);
    this.events += 1;
  }

  private watch(timeoutMs: number, what: string): NodeJS.Timeout {
    let { events } = this;
    let partsLeft = PARTS;
    const onPart = async (): Promise<void> => {
      if (events !== this.events) {
        events = this.events;
        partsLeft = PARTS;
        return;
      }
      // Without an answer, the engine counts as not paused: the deadline holds.
      const isPaused = await this.isPaused().catch(() => false);
      if (isPaused || events !== this.events || --partsLeft > 0) return;
      this.stop();
      this.error = new BroomwagonError('ENGINE_STALLED', `${what} for ${timeoutMs} ms`);
      this.onSilence(this.error);
    };
    return setInterval(() => void onPart(), timeoutMs / PARTS);
  }
}
