import { Controller } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { AbortAttemptsCommand, workerCommandSubject } from '@broomwagon/contracts';
import { HeldLeases, WorkerSession } from '@broomwagon/generation';
import { ContractPipe } from '@broomwagon/messaging';
import { AttemptRegistry } from './attempt-registry';

/** Receives abort commands to this worker, each at least once. `request.fail` of an attempt confirms its command. */
@Controller()
export class AttemptAbortController {
  constructor(
    private readonly registry: AttemptRegistry,
    private readonly leases: HeldLeases,
    private readonly session: WorkerSession,
  ) {}

  @MessagePattern(workerCommandSubject('*', '{workerId}', 'abort'))
  abort(@Payload(new ContractPipe(AbortAttemptsCommand)) command: AbortAttemptsCommand): { stopped: number } {
    // A command for another epoch has nothing to stop: the attempts of that epoch have ended.
    if (this.session.current()?.workerEpoch !== command.workerEpoch) return { stopped: 0 };
    const { attempts, leases, cause } = command;
    const stopped = attempts.filter(({ requestId, attempt }) => this.registry.stop(requestId, attempt, cause));
    const held = (leases ?? []).flatMap(({ leaseId }) => this.leases.findCall(leaseId) ?? []);
    for (const call of held) call.stop(cause);
    return { stopped: stopped.length + held.length };
  }
}
