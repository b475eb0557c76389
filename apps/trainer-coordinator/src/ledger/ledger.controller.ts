import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { JobLedgerRequest, patternOf, type JobLedgerReply } from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { LedgerService } from './ledger.service';

/** The operation `job.ledger`. */
@Controller()
export class LedgerController {
  constructor(private readonly ledgers: LedgerService) {}

  @MessagePattern(patternOf('job.ledger'))
  read(
    @Payload(new ContractPipe(JobLedgerRequest)) { job, roundId }: JobLedgerRequest,
    @Ctx() context: MessageContext,
  ): Promise<JobLedgerReply> {
    return this.ledgers.read(context.pool, job, roundId);
  }
}
