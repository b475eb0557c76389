import { Injectable } from '@nestjs/common';
import {
  invalidField,
  type GroupId,
  type PoolName,
  type ReconcileJobReply,
  type ReconcileJobRequest,
} from '@broomwagon/contracts';
import { failpoint } from '@broomwagon/platform';
import { pagesOfGroups, PoolDirectory, RoundStore, type ReconcileAnswer } from '@broomwagon/state';
import { GrantService } from '../grants/grant.service';
import { RoundSweeps } from '../rounds/round-sweeps';
import { WorkerCommands } from '../commands/worker-commands';

/** Records again, page by page, groups that a trainer has trained and Redis has lost. */
@Injectable()
export class ReconcileService {
  constructor(
    private readonly rounds: RoundStore,
    private readonly pools: PoolDirectory,
    private readonly sweeps: RoundSweeps,
    private readonly commands: WorkerCommands,
    private readonly grants: GrantService,
  ) {}

  /** @throws BroomwagonError as the transition `rounds/reconcile`, and VALIDATION_FAILED */
  async reconcile(pool: PoolName, body: ReconcileJobRequest): Promise<ReconcileJobReply> {
    const { job, takeoverId, step, groups = [], isLast = false, groupIds = [] } = body;
    if (step === undefined && (groups.length > 0 || isLast)) {
      throw invalidField('step', 'is required with groups');
    }
    if (body.trainerEpoch === undefined && takeoverId === undefined) {
      throw invalidField('takeoverId', 'is required without trainerEpoch');
    }
    await this.pools.add(pool);
    let { trainerEpoch, stamp } = body;
    let countedGroups = 0;
    const send = async (page: typeof groups, last: boolean, asked: readonly GroupId[]): Promise<ReconcileAnswer> => {
      const args = { job, trainerEpoch, takeoverId, stamp, step, groups: page, isLast: last, groupIds: asked };
      const answer = await this.rounds.reconcile(pool, args);
      this.follow(pool, job, answer);
      await failpoint('coordinator.reconcile.between-pages');
      ({ trainerEpoch, stamp } = answer);
      countedGroups += answer.countedGroups;
      return answer;
    };
    const pages = pagesOfGroups(groups);
    for (const page of pages.slice(0, -1)) await send(page, false, []);
    const answer = await send(pages.at(-1) ?? [], isLast, groupIds);
    const { aborts: _, cancelledRoundId: _cancelled, ...reply } = answer;
    return { ...reply, countedGroups };
  }

  private follow(pool: PoolName, job: string, { aborts, cancelledRoundId }: ReconcileAnswer): void {
    this.commands.abort(pool, 'abort', aborts);
    if (cancelledRoundId !== undefined) this.sweeps.giveBackSoon(pool, { job, roundId: cancelledRoundId });
    if (aborts.length > 0) this.grants.soon(pool);
  }
}
