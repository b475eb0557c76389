import type { StreamPace } from '@broomwagon/policies';

/** What the calls of one start of an engine have shown, and share. */
export interface EngineMemory {
  /** The engine has answered an abort by id, and the tokens of the request went on. */
  ignoresAborts?: boolean;
  /** Pace of the last stream with several events. */
  pace?: StreamPace;
}

/** Measures how an engine sends the tokens of one stream. */
export class PaceMeter {
  private interval = 1;
  private firstTokens = 0;
  private tokens = 0;
  private firstAtMs: number | undefined;
  private lastAtMs = performance.now();

  /** @param asked tokens of an event that the call has asked for */
  constructor(
    private readonly memory: EngineMemory,
    private readonly asked = 1,
  ) {}

  /**
   * Notes events that have arrived together.
   * @param tokens tokens of the stream so far
   * @param largest tokens of the largest event so far
   */
  note(tokens: number, largest: number): void {
    this.lastAtMs = performance.now();
    this.interval = largest;
    this.tokens = tokens;
    if (this.firstAtMs !== undefined) return;
    this.firstAtMs = this.lastAtMs;
    this.firstTokens = tokens;
  }

  /** Time since the last event with tokens, or since the start. */
  get silentMs(): number {
    return performance.now() - this.lastAtMs;
  }

  /** Pace of the stream; before its second event, that of earlier streams of the engine. */
  get pace(): StreamPace {
    const seconds = (this.lastAtMs - (this.firstAtMs ?? this.lastAtMs)) / 1_000;
    const tokens = this.tokens - this.firstTokens;
    if (seconds > 0 && tokens > 0) return { interval: this.interval, tokensPerSecond: tokens / seconds };
    return this.memory.pace ?? { interval: Math.max(this.asked, this.interval) };
  }

  /** Lets later streams of the engine know the pace. */
  end(): void {
    this.memory.pace = this.pace;
  }
}
