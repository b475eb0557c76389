import { Controller } from '@nestjs/common';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { AbortAttemptsCommand, MoveLeasesCommand, workerCommandSubject } from '@broomwagon/contracts';
import { HeldLeases, MovableCall, WorkerSession } from '@broomwagon/generation';
import { ContractPipe } from '@broomwagon/messaging';

/**
 * Receives the commands of this replica. A command may arrive more than once; the release or move of its lease confirms
 * the command.
 */
@Controller()
export class WorkerCommandsController {
  constructor(
    private readonly leases: HeldLeases,
    private readonly session: WorkerSession,
  ) {}

  @MessagePattern(workerCommandSubject('*', '{workerId}', 'abort'))
  abort(@Payload(new ContractPipe(AbortAttemptsCommand)) command: AbortAttemptsCommand): { stopped: number } {
    if (!this.isCurrent(command)) return { stopped: 0 };
    const calls = (command.leases ?? []).flatMap(({ leaseId }) => this.leases.findCall(leaseId) ?? []);
    const stopped = calls.filter((call) => {
      if (command.cause === 'cut' && call instanceof MovableCall) return call.cut();
      call.stop(command.cause);
      return true;
    });
    return { stopped: stopped.length };
  }

  @MessagePattern(workerCommandSubject('*', '{workerId}', 'move'))
  move(@Payload(new ContractPipe(MoveLeasesCommand)) command: MoveLeasesCommand): { stopped: number } {
    if (!this.isCurrent(command)) return { stopped: 0 };
    const moved = command.leases.filter((lease) => {
      const call = this.leases.findCall(lease.leaseId);
      return call instanceof MovableCall && call.move(command.planId, lease);
    });
    return { stopped: moved.length };
  }

  /** Whether a command is for the present epoch: the leases of another epoch have ended. */
  private isCurrent({ workerEpoch }: { workerEpoch: string }): boolean {
    return this.session.current()?.workerEpoch === workerEpoch;
  }
}
