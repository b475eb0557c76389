import { Injectable, Logger } from '@nestjs/common';
import {
  EVENTS_STREAM,
  eventSubject,
  type FrontierStep,
  type JobFrontierReply,
  type JobId,
  type PoolEvent,
  type RoundId,
} from '@broomwagon/contracts';
import { MessagingConnection, readStream, TypedClient } from '@broomwagon/messaging';
import { type CollectedSamples, SampleCollector } from '@broomwagon/policies';
import { AdminApiConfig } from '../admin-api.config';
import { acceptsEvent, parseEvent } from '../events/accepts-event';
import { replays, computeRoundSeconds, type TrainedRound } from './frontier-replays';
import { CLOCK_MARGIN_MS } from './round-timeline';

/** Maximum recorded groups. A replay of so many groups takes some milliseconds. */
const MAX_GROUPS = 8_192;
/** Maximum events that are read to record samples. */
const MAX_READ = 65_536;
const BATCH = 512;

/** Computes speed and cost of the steps of a job, and of other policies on the recorded samples of the job. */
@Injectable()
export class JobFrontier {
  private readonly logger = new Logger(JobFrontier.name);

  constructor(
    private readonly client: TypedClient,
    private readonly connection: MessagingConnection,
    private readonly config: AdminApiConfig,
  ) {}

  /** @throws BroomwagonError JOB_NOT_FOUND, UNAVAILABLE */
  async read(pool: string, job: JobId): Promise<JobFrontierReply> {
    const { rounds } = await this.client.call(pool, 'round.list', { job }, { timeoutMs: this.config.callTimeoutMs });
    const completed = rounds.filter(({ completedAtMs }) => completedAtMs !== undefined).reverse();
    const found = await Promise.all(completed.map(({ roundId }) => this.readStep(pool, job, roundId)));
    const trained = found.filter((one) => one !== undefined);
    const statuses = trained.map(({ round }) => round);
    const recording = await this.record(pool, job, statuses);
    return {
      steps: trained.map(({ step }) => step),
      whatIf: await replays(recording, statuses),
      recordedGroups: recording.groups.size,
      partialGroups: recording.partialGroups,
    };
  }

  /** Reads a step; undefined if its round is not trained yet. */
  private async readStep(
    pool: string,
    job: JobId,
    roundId: RoundId,
  ): Promise<{ step: FrontierStep; round: TrainedRound } | undefined> {
    const options = { timeoutMs: this.config.callTimeoutMs };
    const [status, { summary, lengthBiasSoFar }] = await Promise.all([
      this.client.call(pool, 'round.status', { job, roundId }, options),
      this.client.call(pool, 'job.ledger', { job, roundId }, options),
    ]);
    const { trained, offPolicyShare, waste } = summary;
    if (trained.samples === 0) return undefined;
    const round = { ...status, completedAtMs: status.completedAtMs! };
    const stepSeconds = computeRoundSeconds(round);
    const cost = {
      stepSeconds,
      tokensPerSecond: (trained.samples * trained.meanTokens) / stepSeconds,
      offPolicyShare,
      lengthBias: lengthBiasSoFar!,
      wasteShare: waste.share,
    };
    return { step: { roundId, step: round.step, kind: round.kind, ...cost }, round };
  }

  /**
   * Records the samples of rounds from their events. Without JetStream, or without stored events, there are no samples.
   */
  private async record(pool: string, job: JobId, rounds: readonly TrainedRound[]): Promise<CollectedSamples> {
    const samples = new SampleCollector(MAX_GROUPS);
    const first = rounds[0];
    if (first === undefined) return samples.collected();
    const isOfJob = acceptsEvent({ job });
    const isOfRounds = new Set(rounds.map(({ roundId }) => roundId));
    let read = 0;
    try {
      const position = {
        stream: EVENTS_STREAM,
        subject: eventSubject(pool, '>'),
        sinceMs: first.openedAtMs - CLOCK_MARGIN_MS,
      };
      for await (const message of readStream(this.connection, position, BATCH)) {
        const event = parseEvent(message) as (PoolEvent & { roundId?: string }) | undefined;
        if (event && isOfJob(event) && isOfRounds.has(event.roundId ?? '')) samples.add(event);
        if ((read += 1) === MAX_READ) break;
      }
    } catch (error) {
      this.logger.warn({ err: error, pool, job }, 'The stream of events could not be read: there is no replay');
    }
    return samples.collected();
  }
}
