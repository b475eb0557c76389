import { OPERATIONS, replicaSubject, SUBJECT_ROOT, type OperationName } from '@broomwagon/contracts';

/** Which replica of each service has replied last: it does not hang. */
export class LiveReplicas {
  private readonly latest = new Map<string, { replicaId: string; seenAtMs: number }>();

  /** Names the service and pool that answer a subject. Undefined for a subject outside the protocol. */
  findGroup(subject: string): string | undefined {
    if (!subject.startsWith(`${SUBJECT_ROOT}.`)) return undefined;
    const [pool, operation] = splitSubject(subject);
    return `${pool} ${OPERATIONS[operation as OperationName]?.owner ?? operation}`;
  }

  seen(group: string, replicaId: string, seenAtMs: number): void {
    this.latest.set(group, { replicaId, seenAtMs });
  }

  /** The subject of the replica that has replied since then; undefined when there is none. */
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
