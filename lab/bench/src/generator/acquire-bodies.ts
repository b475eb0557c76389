import type { BenchWorker } from './jobs';

/** Creates bodies of different acquires. No id needs escaping, so bodies are put together as text. */
export class AcquireBodies {
  private count = 0;
  private items = 0;
  private readonly tag = Date.now().toString(36);

  constructor(
    private readonly workers: readonly BenchWorker[],
    private readonly sessions: number = 0,
  ) {}

  nextId(): string {
    return `${this.tag}-${(this.count++).toString(36)}`;
  }

  /** An item of `lb.acquire-many`. */
  item(acquireId: string): string {
    const index = this.items++;
    const session = this.sessions > 0 ? `,"sessionId":"session-${index % this.sessions}"` : '';
    return `{"acquireId":"${acquireId}","requestId":"job/group-${index % 4_096}/0"${session}`;
  }

  /** A body of `lb.acquire`. */
  acquire(acquireId: string): string {
    const worker = this.workers[this.count % this.workers.length]!;
    return `${this.item(acquireId)},"workerId":"${worker.workerId}","workerEpoch":"${worker.workerEpoch}"}`;
  }

  /** A body of `lb.acquire-many`. */
  acquireMany(acquireIds: readonly string[]): string {
    const worker = this.workers[0]!;
    const items = acquireIds.map((acquireId) => `${this.item(acquireId)}}`).join(',');
    return `{"workerId":"${worker.workerId}","workerEpoch":"${worker.workerEpoch}","acquires":[${items}]}`;
  }
}

const LEASE_ID = '"leaseId":"';

/** The leaseId of a reply, found as text. @throws Error when there is none */
export function leaseIdIn(reply: string): string {
  const at = reply.indexOf(LEASE_ID);
  if (at < 0) throw new Error(`No lease in the reply ${reply.slice(0, 300)}`);
  const from = at + LEASE_ID.length;
  return reply.slice(from, reply.indexOf('"', from));
}

/** A body of `lb.release`. */
export function releaseBody(leaseId: string): string {
  return `{"leaseId":"${leaseId}","outcome":"finished"}`;
}
