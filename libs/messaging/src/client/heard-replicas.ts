import { OPERATIONS, replicaSubject, SUBJECT_ROOT, type OperationName } from '@broomwagon/contracts';

/** Which replica of each service was heard from last: it does not hang. */
export class HeardReplicas {
  private readonly latest = new Map<string, { replicaId: string; heardAtMs: number }>();

  /** Names those who may answer a subject: one service in one pool. Undefined for a subject that is none of ours. */
  groupOf(subject: string): string | undefined {
    if (!subject.startsWith(`${SUBJECT_ROOT}.`)) return undefined;
    const [pool, operation] = partsOf(subject);
    return `${pool} ${OPERATIONS[operation as OperationName]?.owner ?? operation}`;
  }

  hear(group: string, replicaId: string, heardAtMs: number): void {
    this.latest.set(group, { replicaId, heardAtMs });
  }

  /** The own subject of one that was heard from since then; undefined when there is none. */
  ownSubject(subject: string, group: string, sinceMs: number): string | undefined {
    const latest = this.latest.get(group);
    return latest === undefined || latest.heardAtMs < sinceMs
      ? undefined
      : replicaSubject(latest.replicaId, ...partsOf(subject));
  }
}

function partsOf(subject: string): [pool: string, operation: string] {
  const end = subject.indexOf('.', SUBJECT_ROOT.length + 1);
  return end < 0 ? [subject, ''] : [subject.slice(SUBJECT_ROOT.length + 1, end), subject.slice(end + 1)];
}
