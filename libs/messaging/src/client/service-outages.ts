import { type BroomwagonError, OPERATIONS, type OperationName, outages } from '@broomwagon/contracts';

/** Codes of calls that no service has answered, or whose service cannot work. */
const UNANSWERED = new Set(['UNAVAILABLE', 'TIMEOUT']);

/** Notes outages of the services that a client calls: all calls of a service in a pool fail. */
export class ServiceOutages {
  /** Services whose last call has failed. */
  private readonly failing = new Set<string>();

  /** @param isConnected false: NATS does not work, which says nothing of a service */
  constructor(private readonly isConnected: () => boolean) {}

  /** Notes the error with which a service has answered. */
  noteRefusal(subject: string, error: BroomwagonError): void {
    if (UNANSWERED.has(error.code)) this.noteFailure(subject, error);
    else this.noteAnswer(subject);
  }

  /** Notes that a call has failed without an answer. */
  noteFailure(subject: string, error: BroomwagonError): void {
    if (!UNANSWERED.has(error.code)) return;
    const found = parseService(subject);
    if (found === undefined || !this.isConnected()) return;
    const { name, pool } = found;
    this.failing.add(name);
    outages.begin({ name, ids: { pool }, isService: true }, `${error.code}: ${error.message}`, this);
  }

  /** Notes that a service has answered. */
  noteAnswer(subject: string): void {
    if (this.failing.size === 0) return;
    const name = parseService(subject)?.name;
    if (name !== undefined && this.failing.delete(name)) outages.end(name, this);
  }

  /** Forgets all, because the client makes no more calls. */
  stop(): void {
    for (const name of this.failing) outages.forget(name, this);
    this.failing.clear();
  }
}

/** Service and pool of `rollout.v1.<pool>.<operation>`; undefined for a subject of no operation. */
function parseService(subject: string): { name: string; pool: string } | undefined {
  const [, , pool = '', ...rest] = subject.split('.');
  const owner = OPERATIONS[rest.join('.') as OperationName]?.owner;
  return owner && { name: `${owner} of pool ${pool}`, pool };
}
