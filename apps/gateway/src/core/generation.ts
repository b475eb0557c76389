import { randomUUID } from 'node:crypto';
import type { TokenIncrement } from '@broomwagon/engines';
import { type MovableCall, RoutedExperts, type StopCause } from '@broomwagon/generation';
import { CallHistory } from './call-history';
import { EngineReport } from './engine-report';
import type { GenerationInput } from './generation-input';
import { MessageLog } from './message-log';
import type { RepeatIdentity } from './repeat-identity';
import type { Recording } from './recording/recording';
import type { GenerationEnd, RawAnswer, RestoredTokens, WholeResponse } from './response-parts';
import { TokenLog } from './token-log';
import { TokenNames } from './token-names';

/**
 * State of a generation, with the values that only this state has:
 *
 * - `waiting`: no call of an engine runs, before the first call or between two calls.
 * - `running`: a call runs, from its acquire to its release.
 * - `restored`: another replica has generated the whole response.
 * - `ended`: clients have the end.
 */
type State =
  | { readonly name: 'waiting' }
  | { readonly name: 'running'; readonly call: MovableCall }
  | { readonly name: 'restored'; readonly end: GenerationEnd }
  | { readonly name: 'ended'; readonly end: GenerationEnd };

const WAITING: State = { name: 'waiting' };

/** States that may follow each state. */
const NEXT: Record<State['name'], readonly State['name'][]> = {
  waiting: ['running', 'restored', 'ended'],
  running: ['running', 'waiting', 'ended'],
  restored: ['ended'],
  ended: [],
};

/** One response of a model: its tokens so far, their origin, and its end. */
export class Generation {
  /** Unique among the generations of all replicas. */
  readonly uid = randomUUID();
  readonly tokens: TokenLog;
  readonly report: EngineReport;
  readonly calls = new CallHistory();
  /** Routed experts, if the client has asked for them. */
  readonly experts: RoutedExperts | undefined;
  /** Resolves at the end. */
  readonly ended: Promise<GenerationEnd>;
  private resolveEnd!: (end: GenerationEnd) => void;
  private state: State = WAITING;
  private passedAnswer: (RawAnswer & { readonly pieces: Buffer[] }) | undefined;
  private turnRecording: Recording | undefined;
  private turn: Promise<void> | undefined;
  private wasSent = false;
  private wasLost = false;
  /** Created on first use: most generations end without this object. */
  private stopping: AbortController | undefined;
  private stopCause: StopCause | undefined;
  private readonly listeners = new Set<() => void>();

  /**
   * @param id id from the client (`rid` of SGLang), else a new id
   * @param recordFor job whose payload quota the record of the session uses; absent: only a session that was opened is
   *   recorded
   * @param repeat identity of the request and its repeats; absent: repeats cannot be recognized
   * @param requestId id of the request, if it has several choices
   */
  constructor(
    readonly id: string,
    readonly tokenId: string,
    readonly input: GenerationInput,
    readonly repeat?: RepeatIdentity,
    readonly recordFor?: string,
    readonly requestId = id,
  ) {
    const { prompt, sampling, keepsStop } = input;
    const message =
      prompt.messages && new MessageLog(sampling.logprobs ? Number(prompt.engineFields?.top_logprobs ?? 0) : undefined);
    const names = input.hasNames ? new TokenNames() : undefined;
    this.tokens = new TokenLog(sampling.stop ?? [], keepsStop, message, names);
    this.report = new EngineReport(prompt.promptTokenIds);
    this.experts = RoutedExperts.of(prompt);
    this.ended = new Promise((resolve) => (this.resolveEnd = resolve));
  }

  /** End of the generation; clients may have received this end. */
  get end(): GenerationEnd | undefined {
    return this.state.name === 'ended' ? this.state.end : undefined;
  }

  /** End of a response that another replica has generated as a whole, until the generation ends with it. */
  get restoredEnd(): GenerationEnd | undefined {
    return this.state.name === 'restored' ? this.state.end : undefined;
  }

  /** Some tokens were sent to a client, so that the response cannot start again. */
  get isSent(): boolean {
    return this.wasSent;
  }

  /** Another replica continues the response, with a client of its own. */
  get isLost(): boolean {
    return this.wasLost;
  }

  /** Answer of a request that is passed on. */
  get answer(): RawAnswer | undefined {
    return this.passedAnswer;
  }

  /** Recording in the trajectory, known before the first call of an engine if the session is recorded. */
  get recording(): Recording | undefined {
    return this.turnRecording;
  }

  /** Resolves when `recording` is known; undefined before {@link beginTurn}. */
  get turnBegun(): Promise<void> | undefined {
    return this.turn;
  }

  /** Whether the client or the trajectory needs log probabilities. */
  get needsLogprobs(): boolean {
    return this.input.sampling.logprobs === true || this.turnRecording?.turn !== undefined;
  }

  /** Signal that is aborted once the generation is stopped. */
  get signal(): AbortSignal {
    this.stopping ??= new AbortController();
    if (this.stopCause !== undefined) this.stopping.abort();
    return this.stopping.signal;
  }

  /** Cause of the stop; the first cause stays. */
  get stoppedBy(): StopCause | undefined {
    return this.stopCause;
  }

  /** Begins a call, or replaces the running call by the next call of its lease. A stopped generation stops the call. */
  startCall(call: MovableCall): void {
    this.enter({ name: 'running', call });
    if (this.stopCause !== undefined) call.stop(this.stopCause);
  }

  /** Ends the running call without an end of the response. */
  endCall(): void {
    this.enter(WAITING);
  }

  /** Stops the generation, because another replica has the request. */
  lose(): void {
    this.wasLost = true;
    this.stop('shutdown');
  }

  stop(cause: StopCause): void {
    if (this.stopCause !== undefined || this.state.name === 'ended') return;
    this.stopCause = cause;
    this.stopping?.abort();
    if (this.state.name === 'running') this.state.call.stop(cause);
  }

  /** Takes the tokens that another replica has generated, before the first call. */
  restore(made: RestoredTokens): void {
    const { tokenIds, text, logprobs, message, names, whole } = made;
    const choice = names && { logprobs: names };
    this.tokens.restore({ tokenIds, text, logprobs, tokenCount: whole?.tokenCount ?? tokenIds!.length, choice });
    const isReadable = whole !== undefined || (message?.isContentLast === true && !this.input.hasTools);
    if (message !== undefined) this.tokens.message?.restore(message, isReadable);
    this.report.restore(made);
    if (whole !== undefined) this.restoreWhole(whole);
    this.reportChange();
  }

  private restoreWhole(whole: WholeResponse): void {
    const { end, recording, answer } = whole;
    this.enter({ name: 'restored', end });
    this.calls.restore(whole);
    this.turnRecording = recording;
    if (answer !== undefined) this.passAnswer({ ...answer, body: Buffer.from(answer.body, 'base64') });
  }

  /**
   * Takes an increment of a call, whose tokens are in {@link tokens} already, and reports a change to the listeners.
   * @param start number of tokens of earlier calls
   */
  receive(increment: TokenIncrement, start: number): void {
    this.report.takeIncrement(increment, start);
    if (increment.tokenCount > 0) this.calls.receive();
    this.reportChange();
  }

  /** Adds a piece of a stream that is passed on. */
  addPiece(piece: Buffer, contentType: string): void {
    this.calls.receive();
    this.passedAnswer ??= { status: 200, contentType, pieces: [], isWhole: false };
    this.passedAnswer.pieces.push(piece);
    this.reportChange();
  }

  /** Takes the whole answer of a request that is passed on. An answer that was added in pieces stays. */
  passAnswer({ status, contentType, body, isWhole }: Omit<RawAnswer, 'pieces'> & { body: Buffer }): void {
    this.passedAnswer ??= { status, contentType, pieces: [body], isWhole };
  }

  markSent(): void {
    this.wasSent = true;
  }

  /** Takes the recording of the turn that has begun; undefined: the session is not recorded. */
  beginTurn(recording: Promise<Recording | undefined>): void {
    this.turn = recording.then((known) => {
      this.turnRecording = known;
    });
  }

  /** Takes the recording of the turn at its end. */
  endTurn(recording: Recording | undefined): void {
    this.turnRecording = recording;
  }

  /** Starts the response again without tokens. */
  restart(): void {
    this.tokens.clear();
    this.experts?.clear();
    this.passedAnswer = undefined;
    this.report.clearSpans();
    this.calls.restart();
  }

  /** Ends the generation; the first end stays. */
  finish(end: GenerationEnd): void {
    if (this.state.name === 'ended') return;
    this.enter({ name: 'ended', end });
    this.tokens.complete();
    this.resolveEnd(end);
    this.reportChange();
  }

  /** Calls the listener after each change. @returns function that removes the listener */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /**
   * Whether a client reads the response, and the first token arrived less than `ageMs` ago.
   * @param ageMs milliseconds; 0: any time
   */
  isWatchedForLess(ageMs: number): boolean {
    return this.listeners.size > 0 && (ageMs === 0 || !this.calls.hasReceivedFor(ageMs));
  }

  private reportChange(): void {
    for (const listener of this.listeners) listener();
  }

  /** @throws Error if this state cannot follow the present state, which is a defect */
  private enter(state: State): void {
    const { name } = this.state;
    if (!NEXT[name].includes(state.name)) throw new Error(`A generation cannot be ${state.name} after ${name}`);
    this.state = state;
  }
}
