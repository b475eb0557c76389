import { Injectable, Logger } from '@nestjs/common';
import { isBroomwagonError, type JobId, type PoolName, type RoundId, type RoundStatus } from '@broomwagon/contracts';
import { recordSpan, toSpanAttributes } from '@broomwagon/messaging';
import { RoundStore, type RolloutEvent } from '@broomwagon/state';
import { RoundMetrics } from './round.metrics';

/** Share of the groups of a round after which its tail begins. */
const TAIL_FROM = 0.9;
/** Maximum rounds whose tails are timed at once. */
const MAX_TIMED = 1_000;

interface OfRound {
  pool: PoolName;
  job: JobId;
  roundId: RoundId;
}

/**
 * Logs and measures rounds from their events. One replica relays the events of a pool, so each round is logged and
 * counted once.
 */
@Injectable()
export class RoundReports {
  private readonly logger = new Logger('Rounds');
  /** When the tails of open rounds began, milliseconds since 1970. */
  private readonly tails = new Map<string, number>();

  constructor(
    private readonly rounds: RoundStore,
    private readonly metrics: RoundMetrics,
  ) {}

  /** Notes an event that was relayed. Never throws: an event is relayed, whatever becomes of its line in the log. */
  async note(pool: PoolName, event: RolloutEvent): Promise<void> {
    const { job, roundId } = event.body as unknown as OfRound;
    const atMs = Number(event.id.split('-')[0]);
    try {
      await this.report({ pool, job, roundId }, event, atMs);
    } catch (error) {
      this.logger.warn({ err: error, pool, job, roundId, type: event.type }, 'A round was not reported');
    }
  }

  private async report(round: OfRound, { type, body }: RolloutEvent, atMs: number): Promise<void> {
    const key = JSON.stringify([round.pool, round.job, round.roundId]);
    const { sequence: _, job: __, roundId: ___, ...fields } = body;
    switch (type) {
      case 'round.opened':
        this.metrics.count(round.pool, 'opened');
        this.logger.log({ ...round, ...fields }, 'A round begins');
        break;
      case 'round.progressed':
        if (!this.tails.has(key) && Number(body.acceptedGroups) >= TAIL_FROM * Number(body.neededGroups)) {
          if (this.tails.size >= MAX_TIMED) this.tails.clear();
          this.tails.set(key, atMs);
        }
        break;
      case 'round.completed':
        await this.complete(round, fields, atMs, this.tails.get(key));
        this.tails.delete(key);
        break;
      case 'round.closed': {
        const openedAtMs = (await this.status(round))?.openedAtMs;
        const stepMs = openedAtMs && atMs - openedAtMs;
        this.metrics.count(round.pool, 'trained');
        if (stepMs !== undefined) this.metrics.step(round.pool, stepMs);
        this.logger.log({ ...round, ...fields, stepMs }, 'A step ends: the round is trained');
        break;
      }
      case 'round.cancelled':
        this.tails.delete(key);
        this.metrics.count(round.pool, 'cancelled');
        this.logger.warn({ ...round, ...fields }, 'A round was cancelled');
        break;
      default:
    }
  }

  private async complete(round: OfRound, fields: object, atMs: number, tailFromMs?: number): Promise<void> {
    const status = await this.status(round);
    const durationMs = status && atMs - status.openedAtMs;
    const tailShare = durationMs && tailFromMs && Math.min(1, Math.max(0, (atMs - tailFromMs) / durationMs));
    this.metrics.count(round.pool, 'completed');
    if (durationMs !== undefined) this.metrics.completed(round.pool, durationMs, tailShare);
    this.logger.log({ ...round, ...fields, durationMs, tailShare, ...pickCounts(status) }, 'A round has its groups');
    if (status === undefined) return;
    const { traceparent, openedAtMs, acceptedGroups, requestsDone, requestsCut, wastedTokens } = status;
    const attributes = {
      ...toSpanAttributes({ ...round }),
      'broomwagon.accepted_groups': acceptedGroups,
      'broomwagon.requests_done': requestsDone,
      'broomwagon.requests_cut': requestsCut,
      'broomwagon.wasted_tokens': wastedTokens,
    };
    recordSpan({ traceparent, name: 'round', attributes }, openedAtMs, atMs);
  }

  /** The round; undefined if its job was deleted meanwhile, or its summary is no longer kept. */
  private async status({ pool, job, roundId }: OfRound): Promise<RoundStatus | undefined> {
    try {
      return await this.rounds.status(pool, { job, roundId });
    } catch (error) {
      if (isBroomwagonError(error, 'ROUND_NOT_FOUND') || isBroomwagonError(error, 'JOB_NOT_FOUND')) return undefined;
      throw error;
    }
  }
}

function pickCounts(status: RoundStatus | undefined): object {
  if (status === undefined) return {};
  const { neededGroups, requestsDone, requestsCut, groupsRequeued, failedGroups, droppedGroups, wastedTokens } = status;
  return { neededGroups, requestsDone, requestsCut, groupsRequeued, failedGroups, droppedGroups, wastedTokens };
}
