import { Controller } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { AbortAttemptsCommand, workerCommandSubject } from '@broomwagon/contracts';
import { ContractPipe } from '@broomwagon/messaging';
import { WorkerSession } from '../session/worker-session';
import { AttemptRegistry } from './attempt-registry';
import { HeldLeases } from './held-leases';

/** Takes the commands sent to this worker. They come at least once; each attempt confirms by `request.fail`. */
@Controller()
export class AttemptAbortController {
  constructor(
    private readonly registry: AttemptRegistry,
    private readonly leases: HeldLeases,
    private readonly session: WorkerSession,
  ) {}

  @MessagePattern(workerCommandSubject('*', '{workerId}', 'abort'))
  abort(@Payload(new ContractPipe(AbortAttemptsCommand)) command: AbortAttemptsCommand): { stopped: number } {
    // What was said to another epoch is about attempts that are no more.
    if (this.session.current()?.workerEpoch !== command.workerEpoch) return { stopped: 0 };
    const { attempts, leases, cause } = command;
    const stopped = attempts.filter(({ requestId, attempt }) => this.registry.stop(requestId, attempt, cause));
    const held = (leases ?? []).flatMap(({ leaseId }) => this.leases.attemptOf(leaseId) ?? []);
    for (const attempt of held) attempt.stop(cause);
    return { stopped: stopped.length + held.length };
  }
}
