import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { CancelRoundRequest, patternOf, type CancelRoundReply } from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { RoundStore } from '@broomwagon/state';
import { SweepService } from '../upkeep/sweep.service';

const DEFAULT_REASON = 'round-cancelled';

/** `round.cancel`. */
@Controller()
export class RoundCancelController {
  constructor(
    private readonly rounds: RoundStore,
    private readonly sweeper: SweepService,
  ) {}

  @MessagePattern(patternOf('round.cancel'))
  async cancel(
    @Payload(new ContractPipe(CancelRoundRequest)) body: CancelRoundRequest,
    @Ctx() { pool }: MessageContext,
  ): Promise<CancelRoundReply> {
    const { job, roundId, trainerEpoch, stamp, mode, reason } = body;
    const args = { job, roundId, trainerEpoch, stamp, mode, reason: reason ?? DEFAULT_REASON };
    const cancelled = await this.rounds.cancel(pool, args);
    this.sweeper.giveBackSoon(pool, { job, roundId });
    return cancelled;
  }
}
