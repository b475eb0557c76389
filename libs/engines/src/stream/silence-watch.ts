import { BroomwagonError } from '@broomwagon/contracts';
import { allowedSilenceMs, hasStalled, type StreamPace } from '@broomwagon/policies';

/**
 * Parts of a deadline. At the end of each part the watch asks whether events came, and whether the engine is paused.
 */
const PARTS = 4;

export interface SilenceLimits {
  firstTokenTimeoutMs: number;
  stallTimeoutMs: number;
  /** Default: never paused. */
  isPaused?: () => Promise<boolean>;
  /** Reads the engine's own count of tokens; undefined: it has none. Must not throw. */
  countEngineTokens?: () => Promise<number | undefined>;
  pace: () => StreamPace;
}

/**
 * Bounds the silence of a stream: one deadline until the first token, another deadline between any two later events,
 * prolonged by the pace of the stream and by the engine's own count of tokens. Time in which the engine is
 * paused does not count. Keep-alive comments are silence: the server of a hung engine continues to send them. A silence
 * is found up to one part after its deadline, since a timer for each event would cost more.
 */
export class SilenceWatch {
  /** Set once a deadline has passed. */
  error?: BroomwagonError;
  private timer: NodeJS.Timeout;
  private speaking = false;
  private events = 0;

  constructor(
    private readonly limits: SilenceLimits,
    private readonly onSilence: (error: BroomwagonError) => void,
  ) {
    this.timer = this.watch(limits.firstTokenTimeoutMs, 'The engine sent nothing');
  }

  heard(hasTokens: boolean): void {
    if (!this.speaking && !hasTokens) return;
    this.events += 1;
    if (this.speaking) return;
    this.speaking = true;
    clearInterval(this.timer);
    this.timer = this.watch(this.limits.stallTimeoutMs, 'The engine stopped sending');
  }

  stop(): void {
    clearInterval(this.timer);
    this.events += 1;
  }

  private watch(timeoutMs: number, what: string): NodeJS.Timeout {
    const { isPaused = () => Promise.resolve(false), pace, ...limits } = this.limits;
    const partMs = timeoutMs / PARTS;
    let { events } = this;
    let silentMs = 0;
    let counted: number | undefined;
    const onPart = async (): Promise<void> => {
      if (events !== this.events) {
        events = this.events;
        silentMs = 0;
        counted = undefined;
        return;
      }
      // Without an answer, the engine counts as not paused: the deadline holds.
      if ((await isPaused().catch(() => false)) || events !== this.events) return;
      silentMs += partMs;
      const stream = { ...limits, pace: pace(), hasTokens: this.speaking };
      // Two counts are compared, so that the first one is read before the deadline.
      const isNear = silentMs + partMs >= allowedSilenceMs(stream);
      const count = isNear ? await limits.countEngineTokens?.() : undefined;
      const isEngineAtWork = counted === undefined || count === undefined ? undefined : count !== counted;
      counted = count;
      if (events !== this.events || !hasStalled({ ...stream, silentMs, isEngineAtWork })) return;
      this.stop();
      const report = isEngineAtWork === undefined ? '' : `; its count of tokens ${isEngineAtWork ? 'grows' : 'stays'}`;
      this.error = new BroomwagonError('ENGINE_STALLED', `${what} for ${Math.round(silentMs)} ms${report}`);
      this.onSilence(this.error);
    };
    return setInterval(() => void onPart(), partMs);
  }
}
