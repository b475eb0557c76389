import type { SaveItem, Segment } from '@broomwagon/contracts';
import { START, toPlace, toSegment, type Lease, type TokenBuffer, type TokenPlace } from '@broomwagon/generation';
import type { WorkerConfig } from '../worker.config';
import type { Attempt } from './attempt';
import type { UnsavedSegment } from './segment-saver';

/** The saves and reports of a running attempt that the coordinator has, and the next save that is due. */
export class RunningAttempt {
  /** The save that is under way. */
  saving: Promise<void> | undefined;
  /** The tokens are to be saved: the interval since the last save, or since the start, is over. */
  isDue = false;
  /** Places where a save has ended, by number of tokens. The next save begins where the partial save ends. */
  private readonly places = new Map<number, TokenPlace>([[0, START]]);
  private saved = START;
  private isWaiting = false;
  /** Value of `waiting` in the latest report; undefined before the first report. */
  private saidWaiting: boolean | undefined;
  private seenTokens = 0;
  // The time between the start and the first look is shorter than that between two looks, and does not count.
  private silentLooks = -1;
  private looks = -1;

  constructor(
    readonly attempt: Attempt,
    readonly lease: Lease,
    readonly tokens: TokenBuffer,
  ) {}

  /** Notes what has changed in `lookMs`. */
  look(lookMs: number, { partialSaveIntervalMs, waitingAfterMs }: WorkerConfig): void {
    this.silentLooks = this.tokens.count > this.seenTokens ? 0 : this.silentLooks + 1;
    this.seenTokens = this.tokens.count;
    this.isWaiting = this.silentLooks * lookMs >= waitingAfterMs;
    this.looks += 1;
    if (this.looks * lookMs >= partialSaveIntervalMs) this.isDue = true;
  }

  get hasNews(): boolean {
    return this.isWaiting !== this.saidWaiting || this.hasUnsaved;
  }

  /** A complete response is not saved: a resumed attempt would continue it behind its end. */
  get hasUnsaved(): boolean {
    return this.isDue && this.tokens.count > this.saved.tokens && !this.tokens.isComplete;
  }

  /** The next segment has all tokens. */
  beginAgain(): void {
    this.saved = START;
  }

  /** The tokens since the last save. */
  makeSegment(): UnsavedSegment {
    const { attempt, lease, tokens } = this;
    const end = toPlace(tokens);
    this.places.set(end.tokens, end);
    return { attempt, lease, made: toSegment(tokens, undefined, this.saved), totalTokens: end.tokens };
  }

  toSave(segment: Segment | undefined): SaveItem {
    const { attempt, lease, saved } = this;
    const { requestId, boundServerId } = attempt.claim;
    return {
      requestId,
      attempt: attempt.claim.attempt,
      segment,
      savedTokens: segment && saved.tokens > 0 ? saved.tokens : undefined,
      serverId: lease.serverId,
      generatedMs: attempt.generatedMs,
      waiting: this.isWaiting || undefined,
      run: segment && boundServerId !== undefined ? attempt.run : undefined,
    };
  }

  /** Takes the answer to a save. @param savedTokens number of tokens that the partial save has now */
  take({ segment, savedTokens: before = 0, waiting = false }: SaveItem, savedTokens: number): void {
    this.saidWaiting = waiting;
    this.saved = this.places.get(savedTokens) ?? START;
    if (segment === undefined || before + segment.tokenCount > savedTokens) return;
    this.isDue = false;
    this.looks = 0;
  }
}
