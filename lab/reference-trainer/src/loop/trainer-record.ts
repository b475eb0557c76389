import type { GroupId, TrainedGroup } from '@broomwagon/contracts';
import type { PromptRecord } from '../prompts/prompt-record';
import type { HeldStep } from '../results/held-step';

/** Memory of a trainer: the prompts that it has submitted, and the groups that it has trained in each step. */
export class TrainerRecord {
  /** The step in whose round a prompt was submitted. */
  private readonly submittedIn = new Map<GroupId, number>();
  private readonly trainedIn = new Map<number, readonly TrainedGroup[]>();
  /** Prompts that Redis did not have, with their steps: Redis may have them again when it is set back once more. */
  private readonly forgotten = new Map<GroupId, number>();
  /** Groups that were submitted again because their prompts were lost. */
  private readonly submittedAgain = new Set<GroupId>();
  /** Index of the first prompt that may not be submitted yet. */
  private first = 0;

  /**
   * @param held groups that an earlier trainer of the job has trained; all other prompts count as submitted until
   *   Redis reports which are
   */
  constructor(
    private readonly prompts: readonly PromptRecord[],
    held?: readonly HeldStep[],
  ) {
    if (held === undefined) return;
    for (const { id } of prompts) this.submittedIn.set(id, Infinity);
    for (const { step, groups } of held) {
      for (const { groupId } of groups) this.submittedIn.set(groupId, step);
      this.trainedIn.set(step, groups);
    }
  }

  /** Number of prompts that were not submitted yet. */
  get remaining(): number {
    return this.prompts.length - this.submittedIn.size;
  }

  /** Number of prompts that were not submitted yet, by domain; '' stands for no domain. */
  get remainingByDomain(): Record<string, number> {
    const counts = new Map<string, number>();
    for (const { id, domain = '' } of this.prompts) {
      if (!this.submittedIn.has(id)) counts.set(domain, (counts.get(domain) ?? 0) + 1);
    }
    return Object.fromEntries(counts);
  }

  /** Prompts that were not trained. */
  get missing(): GroupId[] {
    const trained = new Set([...this.trainedIn.values()].flatMap((groups) => groups.map(({ groupId }) => groupId)));
    return this.prompts.flatMap(({ id }) => (trained.has(id) ? [] : [id]));
  }

  /**
   * The next prompts to submit, in the order of the data set.
   * @param byDomain maximum prompts of each domain; absent: prompts of any domain
   */
  next(count: number, byDomain?: ReadonlyMap<string, number>): PromptRecord[] {
    const room = byDomain && new Map(byDomain);
    while (this.first < this.prompts.length && this.submittedIn.has(this.prompts[this.first]!.id)) this.first += 1;
    const found: PromptRecord[] = [];
    for (let index = this.first; index < this.prompts.length && found.length < count; index += 1) {
      const prompt = this.prompts[index]!;
      if (this.submittedIn.has(prompt.id)) continue;
      if (room !== undefined) {
        const left = room.get(prompt.domain ?? '') ?? 0;
        if (left <= 0) continue;
        room.set(prompt.domain ?? '', left - 1);
      }
      found.push(prompt);
    }
    return found;
  }

  submitted(prompts: readonly PromptRecord[], step: number): void {
    for (const { id } of prompts) {
      this.submittedIn.set(id, step);
      this.forgotten.delete(id);
    }
  }

  /** Marks groups to be submitted again. @returns number of groups that were not marked before */
  forget(groupIds: readonly GroupId[]): number {
    let count = 0;
    for (const groupId of groupIds) {
      const step = this.submittedIn.get(groupId);
      if (step === undefined) continue;
      this.submittedIn.delete(groupId);
      this.forgotten.set(groupId, step);
      count += 1;
    }
    if (count > 0) this.first = 0;
    return count;
  }

  /** Redis has these groups: groups that it did not have before count as submitted. */
  found(groupIds: readonly GroupId[]): void {
    for (const groupId of groupIds) {
      const step = this.forgotten.get(groupId);
      if (step === undefined) continue;
      this.forgotten.delete(groupId);
      this.submittedIn.set(groupId, step);
    }
  }

  /** Failed groups to submit again, each once: the payload store may have lost their prompts. */
  lostPrompts(failed: readonly GroupId[]): GroupId[] {
    const lost = this.prompts.map(({ id }) => id).filter((id) => failed.includes(id));
    const fresh = lost.filter((id) => !this.submittedAgain.has(id));
    for (const id of fresh) this.submittedAgain.add(id);
    return fresh;
  }

  trained(step: number, groups: readonly TrainedGroup[]): void {
    this.trainedIn.set(step, groups);
  }

  /** Trained steps after the last step that Redis counts as trained, the oldest first. */
  trainedAfter(step: number): [step: number, groups: readonly TrainedGroup[]][] {
    return [...this.trainedIn].filter(([one]) => one > step).toSorted(([one], [other]) => one - other);
  }

  /**
   * Prompts that were submitted after a step and are not trained, and all prompts that Redis did not have. Redis cannot
   * have lost prompts that were submitted earlier.
   */
  openAfter(step: number): GroupId[] {
    const trained = new Set(this.trainedAfter(step).flatMap(([, groups]) => groups.map(({ groupId }) => groupId)));
    const open = [...this.submittedIn].filter(([groupId, when]) => when > step && !trained.has(groupId));
    return [...open, ...this.forgotten].map(([groupId]) => groupId);
  }
}
