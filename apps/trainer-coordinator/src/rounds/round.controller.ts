import { Controller } from '@nestjs/common';
import {
  CancelRoundRequest,
  CloseRoundRequest,
  ListRoundsRequest,
  NextRoundRequest,
  OpenRoundRequest,
  RewardGroupsRequest,
  RoundResultsRequest,
  RoundStatusRequest,
  SubmitGroupsRequest,
  TakeoverRoundRequest,
} from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { InspectionStore, RedisMemory, RoundStore } from '@broomwagon/state';
import { RoundSweeps } from './round-sweeps';
import { ResultsService } from './results.service';
import { RewardService } from './reward.service';
import { RoundService } from './round.service';
import { RoundTraces } from './round-traces';
import { SubmissionService } from './submission.service';

const DEFAULT_CANCEL_REASON = 'round-cancelled';

@Controller()
export class RoundController {
  constructor(
    private readonly store: RoundStore,
    private readonly rounds: RoundService,
    private readonly submissions: SubmissionService,
    private readonly pages: ResultsService,
    private readonly rewards: RewardService,
    private readonly sweeps: RoundSweeps,
    private readonly memory: RedisMemory,
    private readonly inspections: InspectionStore,
    private readonly traces: RoundTraces,
  ) {}

  @Operation('round.next')
  next(body: NextRoundRequest, { pool }: MessageContext) {
    return this.rounds.next(pool, body);
  }

  @Operation('round.open')
  open(body: OpenRoundRequest, { pool }: MessageContext) {
    return this.rounds.open(pool, body);
  }

  @Operation('round.takeover')
  takeover(body: TakeoverRoundRequest, { pool }: MessageContext) {
    return this.store.takeover(pool, body);
  }

  @Operation('round.submit')
  submit(body: SubmitGroupsRequest, { pool }: MessageContext) {
    return this.traces.run('round.submit', pool, body, () => this.submissions.submit(pool, body));
  }

  @Operation('round.list')
  list({ job, limit }: ListRoundsRequest, { pool }: MessageContext) {
    return this.inspections.rounds(pool, { job, limit });
  }

  @Operation('round.status')
  async status(body: RoundStatusRequest, { pool }: MessageContext) {
    const status = await this.store.status(pool, body);
    const full = this.memory.refusal();
    const isOpen = status.state === 'opening' || status.state === 'open';
    if (full && isOpen) status.blockedReason = { code: 'STORE_FULL', message: full.message };
    return status;
  }

  @Operation('round.results')
  results(body: RoundResultsRequest, { pool, replyTo }: MessageContext) {
    return this.pages.results(pool, body, replyTo);
  }

  @Operation('round.reward')
  reward(body: RewardGroupsRequest, { pool }: MessageContext) {
    return this.traces.run('round.reward', pool, body, () => this.rewards.reward(pool, body));
  }

  @Operation('round.close')
  async close({ rewards, remainingGroups, ...body }: CloseRoundRequest, { pool }: MessageContext) {
    return this.traces.run('round.close', pool, body, async () => {
      if (rewards?.length) await this.rewards.rewardBeforeClose(pool, body, { groups: rewards, remainingGroups });
      const closed = await this.store.close(pool, body);
      this.sweeps.foldSoon(pool, body);
      return closed;
    });
  }

  @Operation('round.cancel')
  async cancel({ reason = DEFAULT_CANCEL_REASON, ...body }: CancelRoundRequest, { pool }: MessageContext) {
    return this.traces.run('round.cancel', pool, body, async () => {
      const cancelled = await this.store.cancel(pool, { ...body, reason });
      this.sweeps.giveBackSoon(pool, body);
      return cancelled;
    });
  }
}
