import { MinHeap } from './min-heap';

/** Stale entries of past admissions that may be in the list before it is built again. */
const MANY_STALE = 64;

export interface BatchMember {
  /** Number of the sequence's admission; 0 while the sequence does not run. */
  admission: number;
}

/** Entry of a sequence in the batch; stale once the sequence leaves, since its admission number changes then. */
interface Admitted<Member> {
  sequence: Member;
  admission: number;
  finishStep: number;
}

/** The running sequences, by admission and by the step at which they end; a change costs O(log sequences). */
export class Batch<Member extends BatchMember> {
  /** Entries in order of admission, stale entries among them. */
  private admitted: Admitted<Member>[] = [];
  /** Entries by the step at which they end, stale entries among them. */
  private readonly finishing = new MinHeap<Admitted<Member>>(
    (one, other) =>
      one.finishStep < other.finishStep || (one.finishStep === other.finishStep && one.admission < other.admission),
  );
  private admissions = 0;
  private running = 0;

  get size(): number {
    return this.running;
  }

  enter(sequence: Member, finishStep: number): void {
    sequence.admission = ++this.admissions;
    const entry = { sequence, admission: sequence.admission, finishStep };
    this.running += 1;
    this.admitted.push(entry);
    this.finishing.push(entry);
  }

  leave(sequence: Member): void {
    sequence.admission = 0;
    this.running -= 1;
    if (this.running === 0) {
      this.admitted.length = 0;
      this.finishing.clear();
    } else if (this.admitted.length > 2 * this.running + MANY_STALE) {
      this.admitted = this.admitted.filter((entry) => entry.sequence.admission === entry.admission);
    }
  }

  /** The sequence that ends first, and its step; undefined when nothing runs. */
  nextToFinish(): { sequence: Member; finishStep: number } | undefined {
    for (;;) {
      const next = this.finishing.peek();
      if (next === undefined || next.sequence.admission === next.admission) return next;
      this.finishing.pop();
    }
  }

  /** The sequence admitted last. At least one must run. */
  lastAdmitted(): Member {
    for (;;) {
      const last = this.admitted.at(-1)!;
      if (last.sequence.admission === last.admission) return last.sequence;
      this.admitted.pop();
    }
  }
}
