import { OPERATIONS, replicaSubject, SUBJECT_ROOT, type OperationName } from '@broomwagon/contracts';

/** Replica of each service that has replied last, and so does not hang. */
export class LiveReplicas {
  private readonly latest = new Map<string, { replicaId: string; seenAtMs: number }>();

  /** Returns a name for the service and pool that answer a subject; undefined for a subject outside the protocol. */
  findGroup(subject: string): string | undefined {
    if (!subject.startsWith(`${SUBJECT_ROOT}.`)) return undefined;
    const [pool, operation] = splitSubject(subject);
    return `${pool} ${OPERATIONS[operation as OperationName]?.owner ?? operation}`;
  }

  seen(group: string, replicaId: string, seenAtMs: number): void {
    this.latest.set(group, { replicaId, seenAtMs });
  }

  /** Returns the subject of a replica that has replied since `sinceMs`; undefined if no replica has. */
  ownSubject(subject: string, group: string, sinceMs: number): string | undefined {
    const latest = this.latest.get(group);
    return latest === undefined || latest.seenAtMs < sinceMs
      ? undefined
      : replicaSubject(latest.replicaId, ...splitSubject(subject));
  }
}

function splitSubject(subject: string): [pool: string, operation: string] {
  const end = subject.indexOf('.', SUBJECT_ROOT.length + 1);
  return end < 0 ? [subject, ''] : [subject.slice(SUBJECT_ROOT.length + 1, end), subject.slice(end + 1)];
}
