import { Injectable } from '@nestjs/common';
import {
  type AbortAttemptsCommand,
  type Epoch,
  type MoveLeasesCommand,
  type PoolName,
  workerCommandSubject,
  decodeId,
  wireText,
} from '@broomwagon/contracts';
import { MessagingClient } from '@broomwagon/messaging';
import { groupBy, splitPages, type AttemptFence, type LeaseFence, type LeaseTransfer } from '@broomwagon/state';

interface Held {
  workerId: string;
  workerEpoch: Epoch;
  /** Plan of the moves: one message has the moves of one plan. */
  planId?: string;
}

/** Sends commands to workers. A command may be lost: the sweep repeats each command that needs a confirmation. */
@Injectable()
export class WorkerCommands {
  constructor(private readonly messaging: MessagingClient) {}

  /** Commands the holders to end these attempts, in one message per worker and 128 attempts. */
  abort(pool: PoolName, cause: AbortAttemptsCommand['cause'], attempts: readonly AttemptFence[]): void {
    for (const { holder, page } of pagesByWorker(attempts)) {
      this.send(pool, holder, {
        cause,
        attempts: page.map(({ requestId, attempt }) => ({ requestId, attempt })),
      });
    }
  }

  /** Commands the holders to end the calls under these leases, in one message per worker and 128 leases. */
  abortLeases(pool: PoolName, cause: AbortAttemptsCommand['cause'], leases: readonly LeaseFence[]): void {
    for (const { holder, page } of pagesByWorker(leases)) {
      this.send(pool, holder, {
        cause,
        attempts: [],
        leases: page.map(({ leaseId, requestId }) => ({ leaseId, requestId })),
      });
    }
  }

  /** Commands holders to move the calls of leases to other servers, in one message per worker, plan and 128 leases. */
  moveLeases(pool: PoolName, leases: readonly LeaseTransfer[]): void {
    for (const { holder, page } of pagesByWorker(leases)) {
      const command: MoveLeasesCommand = {
        workerEpoch: holder.workerEpoch,
        planId: holder.planId,
        leases: page.map(({ leaseId, targetServerId, targetEpoch }) => ({ leaseId, targetServerId, targetEpoch })),
      };
      this.messaging.publish(workerCommandSubject(pool, decodeId(holder.workerId), 'move'), wireText(command));
    }
  }

  private send(pool: PoolName, holder: Held, command: Omit<AbortAttemptsCommand, 'workerEpoch'>): void {
    const { workerId, workerEpoch } = holder;
    const subject = workerCommandSubject(pool, decodeId(workerId), 'abort');
    this.messaging.publish(subject, wireText({ workerEpoch, ...command }));
  }
}

function pagesByWorker<Item extends Held>(items: readonly Item[]): { holder: Item; page: Item[] }[] {
  const byWorker = groupBy(items, ({ workerId, workerEpoch, planId = '' }) => `${workerId}/${workerEpoch}/${planId}`);
  return [...byWorker.values()].flatMap((held) => splitPages(held).map((page) => ({ holder: held[0]!, page })));
}
