import { NEVER } from '@broomwagon/policies';
import { Heap } from './heap';
import type { ModelGroup } from './round-model.types';

interface Entry {
  group: ModelGroup;
  /** Number of the group's stay in the queue; a later stay has another entry. */
  stay: number;
  pinStep: number;
}

/** The long-tail queue: finished groups first, then groups pinned by a bound, then the others by place of first cut. */
export class LongtailQueue {
  private readonly stays = new Map<ModelGroup, number>();
  private readonly finished = new Heap<Entry>((a, b) => a.group.place < b.group.place);
  private readonly pinned = new Heap<Entry>(
    (a, b) => a.pinStep < b.pinStep || (a.pinStep === b.pinStep && a.group.place < b.group.place),
  );
  private readonly others = new Heap<Entry>((a, b) => a.group.place < b.group.place);
  private readonly pinsByStep = new Map<number, number>();
  private finishedCount = 0;
  private stay = 0;

  get size(): number {
    return this.stays.size;
  }

  get finishedGroups(): number {
    return this.finishedCount;
  }

  /** Number of unfinished groups that must be taken in this step. */
  pinnedGroups(step: number): number {
    let count = 0;
    for (const [pinStep, groups] of this.pinsByStep) if (pinStep <= step) count += groups;
    return count;
  }

  add(group: ModelGroup): void {
    const entry = { group, stay: ++this.stay, pinStep: group.pinStep };
    this.stays.set(group, entry.stay);
    if (isWhole(group)) {
      this.finished.push(entry);
      this.finishedCount += 1;
      return;
    }
    this.others.push(entry);
    if (group.pinStep === NEVER) return;
    this.pinned.push(entry);
    this.countPin(group.pinStep, 1);
  }

  /** The next group to take in this step; it stays in the queue until it is removed. */
  next(step: number): ModelGroup | undefined {
    const done = this.head(this.finished);
    if (done !== undefined) return done;
    const pinned = this.head(this.pinned);
    return pinned !== undefined && pinned.pinStep <= step ? pinned : this.head(this.others);
  }

  /** Takes a group out; must be called before the group changes, for the counts to stay right. */
  remove(group: ModelGroup): void {
    if (!this.stays.delete(group)) return;
    if (isWhole(group)) this.finishedCount -= 1;
    else if (group.pinStep !== NEVER) this.countPin(group.pinStep, -1);
  }

  groups(): IterableIterator<ModelGroup> {
    return this.stays.keys();
  }

  private head(heap: Heap<Entry>): ModelGroup | undefined {
    for (let entry = heap.peek(); entry !== undefined; entry = heap.peek()) {
      if (this.stays.get(entry.group) === entry.stay) return entry.group;
      heap.pop();
    }
    return undefined;
  }

  private countPin(step: number, by: number): void {
    const count = (this.pinsByStep.get(step) ?? 0) + by;
    if (count > 0) this.pinsByStep.set(step, count);
    else this.pinsByStep.delete(step);
  }
}

/** Whether the group has all the samples it needs. */
export function isWhole(group: ModelGroup): boolean {
  return group.finished >= group.samples;
}
