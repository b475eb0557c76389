import { Injectable, Logger } from '@nestjs/common';
import {
  BroomwagonError,
  cutText,
  isBroomwagonError,
  LIMITS,
  type SaveManyReply,
  type SaveManyRequest,
  type SaveReply,
  type SaveRequest,
  type ClaimReply,
  type ClaimRequest,
  type FailReason,
  type FailReply,
  type FailRequest,
  type PoolName,
  type RequestSegmentsReply,
  type RequestSegmentsRequest,
  type Segment,
} from '@broomwagon/contracts';
import { PARKED } from '@broomwagon/messaging';
import { failpoint } from '@broomwagon/platform';
import { PayloadStore, PoolDirectory, RequestStore, type SaveManyArgs } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { RoundSweeps } from '../rounds/round-sweeps';
import { WorkerCommands } from '../commands/worker-commands';
import { PayloadRoomService } from '../payload/payload-room.service';
import { GrantService } from '../grants/grant.service';
import { toJobId, toSegmentArgs } from './segment-of';

/**
 * Evidence of each reason.
 * - `failure`: a fault of the engine or of the request.
 * - `unserved`: no engine has served the request.
 * - `other`, for example a shutdown: nothing about engine or request.
 */
const EVIDENCE: Record<FailReason, 'failure' | 'unserved' | 'other'> = {
  'engine-error': 'failure',
  'engine-rejected': 'failure',
  payload: 'failure',
  'no-server': 'unserved',
  'engine-abort': 'other',
  aborted: 'other',
  shutdown: 'other',
  unclaimed: 'other',
  'payload-full': 'other',
  timeout: 'other',
};

/** Bytes after which a page of segments ends. */
const REPLY_BYTES = LIMITS.bodyBytes / 2;

/** Characters of the message of a failure that are kept. */
const REASON_LENGTH = 300;

/**
 * Whether the end counts as a failure. A missing or invalid payload counts; a full or unavailable store does not.
 */
function countsAsFailure({ reason, retryable }: FailRequest): boolean {
  return EVIDENCE[reason] === 'failure' && !(reason === 'payload' && retryable);
}

/** Operations of workers on requests. Each runs one transition, and then the steps that its answer requires. */
@Injectable()
export class RequestService {
  private readonly logger = new Logger(RequestService.name);

  constructor(
    private readonly requests: RequestStore,
    private readonly pools: PoolDirectory,
    private readonly grants: GrantService,
    private readonly sweeps: RoundSweeps,
    private readonly commands: WorkerCommands,
    private readonly room: PayloadRoomService,
    private readonly payloads: PayloadStore,
    private readonly metrics: CoordinatorMetrics,
    private readonly config: CoordinatorConfig,
  ) {}

  /** @param replyTo inbox for the answer of a parked claim. @throws BroomwagonError FENCED, QUEUE_FULL, UNAVAILABLE */
  async claim(pool: PoolName, body: ClaimRequest, replyTo: string | undefined): Promise<ClaimReply | typeof PARKED> {
    // Upkeep answers a parked claim at its deadline, and visits only pools of the directory.
    await this.pools.add(pool);
    const answer = await this.requests.claim(pool, { replyTo, ...body });
    await failpoint('coordinator.claim.before-reply');
    if (answer.parked) {
      this.metrics.claims.inc({ pool, outcome: 'parked' });
      return PARKED;
    }
    this.metrics.claims.inc({ pool, outcome: answer.claims.length > 0 ? 'given' : 'empty' });
    return { claims: answer.claims };
  }

  /** A page of the segments of a request. @throws BroomwagonError REQUEST_NOT_FOUND, UNAVAILABLE */
  async segments(
    pool: PoolName,
    { requestId, cursor = 0, limit = Infinity }: RequestSegmentsRequest,
  ): Promise<RequestSegmentsReply> {
    const { segments: all } = await this.requests.segments(pool, { requestId });
    const segments: Segment[] = [];
    const most = Math.min(limit, all.length - cursor);
    for (let bytes = 0; bytes < REPLY_BYTES && segments.length < most;) {
      const segment = all[cursor + segments.length]!;
      segments.push(segment);
      bytes += Buffer.byteLength(JSON.stringify(segment));
    }
    const next = cursor + segments.length;
    return next < all.length ? { segments, cursor: next } : { segments };
  }

  /**
   * @throws BroomwagonError FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED, VALIDATION_FAILED, PAYLOAD_FOREIGN, UNAVAILABLE
   */
  async save(pool: PoolName, body: SaveRequest): Promise<SaveReply> {
    const { moveTimes, action } = await this.requests.save(pool, {
      ...body,
      ...toSegmentArgs(this.payloads, pool, body),
    });
    this.metrics.observeMove(moveTimes);
    return { action };
  }

  /** Each save has a result of its own. @throws BroomwagonError UNAVAILABLE; repeating is safe */
  async saveMany(pool: PoolName, { workerId, workerEpoch, saves }: SaveManyRequest): Promise<SaveManyReply> {
    const results: SaveManyReply['results'] = [];
    const taken: SaveManyArgs['saves'] = [];
    const positions: number[] = [];
    for (const [position, save] of saves.entries()) {
      try {
        const segment = toSegmentArgs(this.payloads, pool, save, `saves.${position}.segment`);
        taken.push(Object.assign({}, save, segment));
        positions.push(position);
      } catch (error) {
        if (!isBroomwagonError(error)) throw error;
        results[position] = { error: error.toWire() };
      }
    }
    if (taken.length === 0) return { results };
    const answers = await this.requests.saveMany(pool, { workerId, workerEpoch, saves: taken });
    for (const [index, answer] of answers.results.entries()) {
      const position = positions[index]!;
      if ('error' in answer) {
        results[position] = { error: BroomwagonError.fromWire(answer.error).toWire() };
      } else {
        this.metrics.observeMove(answer.moveTimes);
        results[position] = { action: answer.action, savedTokens: answer.savedTokens };
      }
    }
    return { results };
  }

  /**
   * @throws BroomwagonError FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED, VALIDATION_FAILED, PAYLOAD_FOREIGN, UNAVAILABLE
   */
  async fail(pool: PoolName, body: FailRequest): Promise<FailReply> {
    const answer = await this.requests.fail(pool, {
      ...body,
      ...toSegmentArgs(this.payloads, pool, body),
      countsAsFailure: countsAsFailure(body),
      isUnserved: EVIDENCE[body.reason] === 'unserved',
      deadlineMs: this.config.requestFailureDeadlineMs,
      missingRef: await this.missing(pool, body),
      message: body.message && cutText(body.message, REASON_LENGTH),
    });
    this.metrics.attempts.inc({ outcome: answer.state });
    this.metrics.observeMove(answer.moveTimes);
    this.commands.abort(pool, 'abort', answer.aborts);
    // If the payloads of the job have no room, its claims must stop before the request is granted again.
    if (body.reason === 'payload-full' || (body.reason === 'payload' && body.retryable)) {
      await this.room.look(pool, answer.job, body.reason === 'payload-full');
    }
    if (answer.state === 'pending' || answer.madeRoom) this.grants.soon(pool);
    if (answer.roundCompleted) this.sweeps.cutSoon(pool, answer);
    return { state: answer.state };
  }

  /**
   * Reference of a segment to forget: neither the worker nor this process can read the segment, and the store of this
   * process works. If this process can read the segment, the worker has another store. If the store is broken, the
   * segment may return with the store.
   */
  private async missing(pool: PoolName, { requestId, missingRef }: FailRequest): Promise<string | undefined> {
    if (missingRef === undefined) return undefined;
    this.payloads.requireRef(missingRef, { pool, job: toJobId(requestId), owner: requestId }, 'missingRef');
    try {
      JSON.parse((await this.payloads.get(missingRef)).toString('utf8'));
    } catch (error) {
      if (!isBroomwagonError(error, 'UNAVAILABLE')) return missingRef;
      const isStoreBroken = await this.payloads.checkWritable().then(
        () => false,
        () => true,
      );
      if (!isStoreBroken) return missingRef;
      this.logger.warn({ pool, requestId, err: error }, 'A segment cannot be read now, and is kept');
      return undefined;
    }
    this.logger.warn({ pool, requestId }, 'A worker does not find a stored payload: it may use another payload store');
    return undefined;
  }
}
