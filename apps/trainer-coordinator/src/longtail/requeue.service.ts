import { Injectable } from '@nestjs/common';
import {
  invalidField,
  isBroomwagonError,
  type PoolName,
  type RequeueReply,
  type RequeueRequest,
  type RequeueResult,
  type RequeuedSample,
} from '@broomwagon/contracts';
import { failpoint } from '@broomwagon/platform';
import { LongtailStore, PayloadStore, PoolDirectory } from '@broomwagon/state';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { toSegmentArgs } from '../requests/segment-of';
import { RoundSweeps } from '../rounds/round-sweeps';
import { PagedWork } from '../upkeep/paged-work';
import { WorkerCommands } from '../commands/worker-commands';

/** Takes unfinished samples out of their rounds. Each sample has a transition, and so a result, of its own. */
@Injectable()
export class RequeueService {
  constructor(
    private readonly longtail: LongtailStore,
    private readonly pools: PoolDirectory,
    private readonly sweeps: RoundSweeps,
    private readonly commands: WorkerCommands,
    private readonly payloads: PayloadStore,
    private readonly metrics: CoordinatorMetrics,
  ) {}

  /**
   * @throws BroomwagonError VALIDATION_FAILED, WORKER_NOT_FOUND, FENCED (the worker epoch), UNAVAILABLE; repeating is
   * safe
   */
  async requeue(pool: PoolName, body: RequeueRequest): Promise<RequeueReply> {
    checkJob(body);
    checkCaller(body);
    const samples = body.requests.map((sample, position) => ({
      sample,
      ...toSegmentArgs(this.payloads, pool, sample, `requests.${position}.segment`),
    }));
    // The sweep repeats aborts of running samples, and visits only pools of the directory.
    await this.pools.add(pool);
    const results: RequeueResult[] = [];
    for (const { sample, segment, tokens } of samples) {
      results.push(await this.requeueOne(pool, body, sample, { segment, tokens }));
      await failpoint('coordinator.requeue.between-requests');
    }
    return { results };
  }

  /**
   * A requeued sample takes its group out of the open round. Repeats the cut commands to the holders of the other
   * samples. @throws BroomwagonError UNAVAILABLE
   */
  @PagedWork({ order: 50, isRepeat: true, isDue: ({ leaving }) => leaving > 0 })
  async repeatLeaving(pool: PoolName): Promise<void> {
    for await (const page of this.longtail.pages('repeat', pool)) {
      this.metrics.sweepPages.inc({ kind: 'leave' });
      this.commands.abort(pool, 'cut', page.aborts);
    }
  }

  private async requeueOne(
    pool: PoolName,
    { workerId, workerEpoch }: RequeueRequest,
    { requestId, attempt }: RequeuedSample,
    made: { segment?: string; tokens: number },
  ): Promise<RequeueResult> {
    try {
      const answer = await this.longtail.requeue(pool, { requestId, attempt, workerId, workerEpoch, ...made });
      this.metrics.attempts.inc({ outcome: answer.state });
      this.commands.abort(pool, 'cut', answer.aborts);
      if (answer.roundCompleted) this.sweeps.cutSoon(pool, answer);
      return { requestId, state: answer.state };
    } catch (error) {
      const isOfWorker = isBroomwagonError(error) && ['workerId', 'workerEpoch'].includes(error.field ?? '');
      if (!isBroomwagonError(error) || error.retryable || isOfWorker) throw error;
      return { requestId, error: error.toWire() };
    }
  }
}

function checkCaller({ workerId, workerEpoch, requests }: RequeueRequest): void {
  if ((workerId === undefined) !== (workerEpoch === undefined)) {
    throw invalidField('workerEpoch', 'workerId and workerEpoch are given together');
  }
  const position = requests.findIndex(({ segment }) => workerId === undefined && segment !== undefined);
  if (position >= 0) throw invalidField(`requests.${position}.segment`, 'only the worker of the sample has a segment');
}

function checkJob({ job, requests }: RequeueRequest): void {
  const position = requests.findIndex(({ requestId }) => !requestId.startsWith(`${job}/`));
  if (position < 0) return;
  const field = `requests.${position}.requestId`;
  throw invalidField(field, `not a request of job ${job}`);
}
