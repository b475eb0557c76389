import { setImmediate as nextTurn } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import {
  EVENTS_STREAM,
  eventSubject,
  type FrontierStep,
  type FrontierWhatIf,
  type JobFrontierReply,
  type JobId,
  type PoolEvent,
  type RoundSummary,
} from '@broomwagon/contracts';
import { MessagingConnection, readStream, TypedClient } from '@broomwagon/messaging';
import { type FixedPolicy, roundTime, whatIf } from '@broomwagon/policies';
import { AdminApiConfig } from '../admin-api.config';
import { acceptsEvent, eventOf } from '../events/accepts-event';
import { RecordedSamples, type Recording } from './recorded-samples';
import { CLOCK_MARGIN_MS } from './round-timeline';

/** Events that are looked at for the recorded samples. */
const MOST_READ = 65_536;
const BATCH = 512;

/** The policies that a recording is replayed under. */
const TRIED: readonly FixedPolicy[] = [
  { name: 'wait', overProvision: 1 },
  ...(['regenerate', 'resume', 'drip'] as const).flatMap((name) =>
    [1.25, 1.5].map((overProvision) => ({ name, overProvision })),
  ),
];

type TrainedRound = RoundSummary & { completedAtMs: number };

/** Speed and cost of the steps of a job, and of other policies on its recorded samples. */
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
    const completed = rounds.filter((round): round is TrainedRound => round.completedAtMs !== undefined).reverse();
    const found = await Promise.all(completed.map((round) => this.stepOf(pool, job, round)));
    const steps = found.filter((step) => step !== undefined);
    const trained = completed.filter(({ roundId }) => steps.some((step) => step.roundId === roundId));
    const recording = await this.record(pool, job, trained);
    return {
      steps,
      whatIf: await replays(recording, trained),
      recordedGroups: recording.groups.length,
      partialGroups: recording.partialGroups,
    };
  }

  /** Undefined if the round is not trained yet. */
  private async stepOf(pool: string, job: JobId, round: TrainedRound): Promise<FrontierStep | undefined> {
    const { roundId, step, kind } = round;
    const options = { timeoutMs: this.config.callTimeoutMs };
    const { summary, lengthBiasSoFar } = await this.client.call(pool, 'job.ledger', { job, roundId }, options);
    const { trained, offPolicyShare, waste } = summary;
    const lengthBias = lengthBiasSoFar!;
    if (trained.samples === 0) return undefined;
    const stepSeconds = secondsOf(round);
    const tokensPerSecond = (trained.samples * trained.meanTokens) / stepSeconds;
    return { roundId, step, kind, stepSeconds, tokensPerSecond, offPolicyShare, lengthBias, wasteShare: waste.share };
  }

  /** Nothing is recorded without JetStream, or when the stream has removed the events. */
  private async record(pool: string, job: JobId, rounds: readonly TrainedRound[]): Promise<Recording> {
    const samples = new RecordedSamples();
    const first = rounds[0];
    if (first === undefined) return samples.recording();
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
        const event = eventOf(message) as (PoolEvent & { roundId?: string }) | undefined;
        if (event && isOfJob(event) && isOfRounds.has(event.roundId ?? '')) samples.add(event);
        if ((read += 1) === MOST_READ) break;
      }
    } catch (error) {
      this.logger.warn({ err: error, pool, job }, 'The stream of events could not be read: there is no replay');
    }
    return samples.recording();
  }
}

/** One replay in each turn of the event loop: a replay of all groups takes some milliseconds. */
async function replays(recording: Recording, rounds: readonly TrainedRound[]): Promise<FrontierWhatIf[]> {
  const { groups, groupsPerStep, policy, longestTokens } = recording;
  // A fixed concurrency needs a model of the servers; each round under `auto` has its own replay.
  if (policy === undefined || policy.name === 'fixed-concurrency' || policy.name === 'auto') return [];
  if (groups.length < 2 * groupsPerStep) return [];
  const own: FixedPolicy = { ...policy, name: policy.name, overProvision: policy.overProvision ?? 1 };
  const time = roundTime(
    rounds.flatMap((round) => {
      const tokens = longestTokens.get(round.roundId);
      return tokens === undefined ? [] : [{ longestTokens: tokens, durationMs: 1_000 * secondsOf(round) }];
    }),
  );
  const samples = { groups, groupsPerStep, time };
  const recordedSeconds = rounds.reduce((sum, round) => sum + secondsOf(round), 0) / rounds.length;
  const scale = recordedSeconds / whatIf(samples, own).stepTime;
  const isOwn = (policy: FixedPolicy): boolean =>
    policy.name === own.name && policy.overProvision === own.overProvision;
  const points: FrontierWhatIf[] = [];
  for (const tried of [own, ...TRIED.filter((one) => !isOwn(one))]) {
    await nextTurn();
    const { stepTime, tokensPerTime, versionSpan: _, ...cost } = whatIf(samples, tried);
    const { name, overProvision } = tried;
    const speed = { stepSeconds: stepTime * scale, tokensPerSecond: tokensPerTime / scale };
    points.push({ policy: name, overProvision, isOwn: tried === own, ...speed, ...cost });
  }
  return points;
}

function secondsOf({ openedAtMs, completedAtMs }: TrainedRound): number {
  return Math.max(1, completedAtMs - openedAtMs) / 1_000;
}
