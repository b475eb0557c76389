/** One line of the results file: one trained sample. */
export interface ResultLine {
  promptId: string;
  sampleIndex: number;
  /** Round that trained it. */
  roundId: string;
  /** The whole text, when every segment has one. */
  text?: string;
  /** All token ids, when every segment has them. */
  tokenIds?: number[];
  finishReason: 'stop' | 'length';
  /** What each attempt made, in order. */
  segments: { weightVersion: number; serverId: string; attempt: number; tokenCount: number }[];
}

/** Where trained samples go. */
export interface ResultSink {
  /**
   * All samples of one round, before the round is closed. After a takeover it may be called again for the same
   * round: the later call stands for it.
   */
  writeRound(roundId: string, lines: readonly ResultLine[]): Promise<void>;
}
