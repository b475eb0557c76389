import { createHash, randomBytes } from 'node:crypto';
import { Injectable, Logger } from '@nestjs/common';
import { BroomwagonError, encodeId, idFault, invalidField, isBroomwagonError, type JobId } from '@broomwagon/contracts';
import { withRetry } from '@broomwagon/messaging';
import { PayloadStore, toTrajectoryId, TrajectoryStore, type TurnRecord, type TurnTokens } from '@broomwagon/state';
import { GatewayConfig } from '../../gateway.config';
import { GatewayMetrics } from '../../gateway-metrics';
import type { Generation } from '../generation';
import type { GenerationEnd } from '../response-parts';
import type { Recording } from './recording';
import { describeMessages, toTurnChat } from './turn-messages';
import { findParent, getMessages, buildSequence } from './turn-sequence';

/** Maximum tries to record a turn: the parent of the turn may get another record meanwhile. */
const MAX_TRIES = 3;
/** Maximum time for which a turn waits for stores that do not answer, at its beginning and at its end, milliseconds. */
const STORE_DEADLINE_MS = 10_000;

/** Records the turns of sessions. A failure to record never affects the generation. */
@Injectable()
export class TrajectoryRecorder {
  private readonly logger = new Logger(TrajectoryRecorder.name);

  constructor(
    private readonly trajectories: TrajectoryStore,
    private readonly payloads: PayloadStore,
    private readonly metrics: GatewayMetrics,
    private readonly config: GatewayConfig,
  ) {}

  /**
   * Begins the trajectory of a session, unless the session has a trajectory.
   * @param about `isDrawn`: the id was drawn for this call, so that no earlier session has it; `sampling`: sampling
   *   parameters of each request of the session, as JSON
   * @throws BroomwagonError FORBIDDEN, UNAVAILABLE
   */
  async open(
    sessionId: string,
    tokenId: string,
    job: string,
    { isDrawn = false, metadata, sampling }: { isDrawn?: boolean; metadata?: object; sampling?: string } = {},
  ): Promise<{ made: boolean; samplingAgeMs?: number; stamp: string }> {
    const { pool } = this.config;
    const about = JSON.stringify({ sessionId, tokenId, job, createdAtMs: Date.now(), metadata });
    const stamp = this.trajectories.seenStamp(pool);
    const id = toTrajectoryId(sessionId);
    const opened = await this.trajectories.open(pool, { id, about, isDrawn, sampling, stamp });
    if (opened.about.tokenId === tokenId) return opened;
    throw new BroomwagonError('FORBIDDEN', 'The session belongs to another key');
  }

  /**
   * Begins a turn before the first call of an engine: a recorded turn needs token ids and log probabilities. Never
   * throws.
   * @returns undefined if the session is not recorded
   */
  async begin(generation: Generation): Promise<Recording | undefined> {
    const { tokenId, recordFor, uid, repeat } = generation;
    const { sessionId } = generation.input.placement;
    if (sessionId === undefined) return undefined;
    const identity = createHash('sha256')
      .update(repeat === undefined ? uid : `${repeat.key}${repeat.digest}`)
      .digest('hex');
    const hasOwnId = repeat !== undefined && repeat.kind !== 'session';
    const turnOf = { id: toTrajectoryId(sessionId), tokenId, identity, generation: uid, hasOwnId };
    try {
      const { job, refusal, ...begun } = await untilAnswered()(async () => {
        if (recordFor !== undefined) await this.open(sessionId, tokenId, recordFor);
        const seen = { stamp: this.trajectories.seenStamp(this.config.pool) };
        return this.trajectories.begin(this.config.pool, { ...turnOf, ...seen });
      });
      return job === undefined ? undefined : { job, ...begun, state: 'pending', reason: refusal };
    } catch (error) {
      this.logger.warn({ id: generation.id, err: error }, 'The turn was not begun');
      // Without `recordFor` from the client, nobody knows whether the session is recorded.
      return recordFor === undefined ? undefined : { job: '', state: 'pending', reason: getErrorCode(error) };
    }
  }

  /**
   * Records a turn before its client gets the end of the response: the next turn of the client extends this turn. Never
   * throws.
   * @returns the recording with its final state
   */
  async record(generation: Generation, end: GenerationEnd): Promise<Recording | undefined> {
    const { recording } = generation;
    if (recording === undefined) return undefined;
    const { job, turn, number } = recording;
    let { stamp } = recording;
    let reason = recording.reason ?? (end.reason === 'error' ? end.error.code : undefined);
    if (reason === undefined && turn !== undefined) {
      try {
        ({ reason, stamp = stamp } = await this.store(generation, end, job, turn));
      } catch (error) {
        reason = getErrorCode(error);
        this.logger.warn({ id: generation.id, err: error }, 'The turn was not recorded');
      }
    }
    this.metrics.turns.inc({ outcome: reason ?? 'recorded' });
    if (reason === undefined) return { job, turn, number, stamp, state: 'recorded' };
    if (turn !== undefined) await this.reportMissing(generation, turn, reason);
    return { job, turn, number, stamp, state: 'missing', reason };
  }

  private async reportMissing(generation: Generation, turn: number, error: string): Promise<void> {
    const missed = { id: getTrajectoryId(generation), turn, generation: generation.uid, error };
    await this.trajectories.miss(this.config.pool, missed).catch((cause: Error) => {
      this.logger.warn({ id: generation.id, err: cause }, 'The reason of a missing turn was not noted');
    });
  }

  /**
   * @returns the reason if the turn was not recorded, and the stamp of the last try
   * @throws BroomwagonError errors of Redis and of the payload store
   */
  private async store(
    generation: Generation,
    end: GenerationEnd,
    job: string,
    turn: number,
  ): Promise<{ reason?: string; stamp?: string }> {
    const promptTokenIds = getPromptIds(generation);
    const { allIds: tokenIds, allLogprobs: logprobs } = generation.tokens;
    if (promptTokenIds === undefined) return { reason: 'NO_PROMPT_IDS' };
    if (tokenIds === undefined) return { reason: 'NO_TOKEN_IDS' };
    const id = getTrajectoryId(generation);
    const { pool } = this.config;
    const messages = this.config.recordMessages ? generation.input.prompt.messages : undefined;
    const described = messages && describeMessages(messages);
    const sequence = buildSequence([...promptTokenIds, ...tokenIds], generation.uid, described);
    const retry = untilAnswered();
    let lastStamp: string | undefined;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const { sequences } = await retry(() => this.trajectories.sequences(pool, { id }));
      const parent = findParent(promptTokenIds, sequences);
      const added = promptTokenIds.slice(parent?.tokens ?? 0);
      const response = generation.tokens.message?.whole();
      const chat = messages && response && toTurnChat(messages, response, parent && getMessages(parent.sequence));
      const payload: TurnTokens = { promptTokenIds: added, tokenIds, logprobs, chat };
      const name = { pool, job: encodeId(job), owner: `trajectory/${id}` };
      const named = { ...name, name: `${turn}.${randomBytes(8).toString('hex')}` };
      const bytes = Buffer.from(JSON.stringify(payload));
      const ref = await retry(() => this.payloads.put(named, bytes));
      const record: TurnRecord = {
        turn,
        id: generation.id,
        parent: parent?.turn,
        ref,
        promptTokens: added.length,
        responseTokens: tokenIds.length,
        finishReason: end.reason,
        weights: [...generation.report.spans],
        isVersionReported: generation.report.isVersionReported,
      };
      const recorded = {
        id,
        turn,
        generation: generation.uid,
        ref,
        record: JSON.stringify(record),
        sequence,
        ...(parent && { parent: parent.turn, parentSequence: parent.sequence }),
      };
      const { outcome, stamp } = await retry(() => {
        const seen = { stamp: this.trajectories.seenStamp(pool) };
        return this.trajectories.record(pool, { ...recorded, ...seen });
      });
      lastStamp = stamp;
      if (outcome === 'recorded') return { stamp };
      if (outcome !== 'changed') return { reason: outcome.toUpperCase(), stamp };
    }
    return { reason: 'CHANGED', stamp: lastStamp };
  }
}

/** Repeats calls while stores do not answer. All calls together take at most {@link STORE_DEADLINE_MS}. */
function untilAnswered(): <T>(call: () => Promise<T>) => Promise<T> {
  const endsAtMs = performance.now() + STORE_DEADLINE_MS;
  return (call) => {
    // A full store has no room within seconds.
    const refused = new AbortController();
    const attempt = () =>
      call().catch((error: unknown) => {
        if (!isBroomwagonError(error, 'UNAVAILABLE')) refused.abort();
        throw error;
      });
    return withRetry(attempt, { deadlineMs: endsAtMs - performance.now(), signal: refused.signal });
  };
}

function getTrajectoryId({ input }: Generation): string {
  return toTrajectoryId(input.placement.sessionId!);
}

/** Prompt token ids as reported first, else from the last answer, where the continued tokens follow them. */
function getPromptIds({ report }: Generation): number[] | undefined {
  const { promptTokenIds, promptTokens, fields } = report;
  const { prompt_token_ids: ids } = fields;
  return promptTokenIds ?? (Array.isArray(ids) ? (ids as number[]).slice(0, promptTokens) : undefined);
}

const DEFAULT_JOB: JobId = 'gateway';

/** The job whose payload quota the session uses. @throws BroomwagonError VALIDATION_FAILED */
export function checkedJob(value: unknown = DEFAULT_JOB, field: string): JobId {
  if (typeof value !== 'string') throw invalidField(field, 'must be a text');
  const fault = idFault(value);
  if (fault !== undefined) throw invalidField(field, fault);
  return value;
}

function getErrorCode(error: unknown): string {
  return isBroomwagonError(error) ? error.code : 'INTERNAL';
}
