import type { RoundRules } from '@broomwagon/contracts';
import { NEVER, pinStep } from '../tail';
import { spread } from './spread';

/** A group of a replay. Each sample of the group has run for {@link clock} tokens, or is done. */
export class ReplayedGroup {
  /** Tokens of all samples at their end. */
  total = 0;
  /** Tokens of all samples so far. */
  made = 0;
  /** Tokens that the longest sample still has to generate. */
  left = 0;
  /** Step of the first kept token. */
  firstStep = 0;
  cuts = 0;
  pinStep = NEVER;
  /** Step that trains the group; 0 before. */
  trainedIn = 0;
  private clock = 0;
  private draws = 0;

  constructor(
    private readonly id: number,
    private readonly recorded: readonly number[],
    public lengths: readonly number[] = recorded,
  ) {
    this.begin(recordedShape(recorded));
  }

  /**
   * Runs the group for `tokens` tokens, in a round of this step that does not accept the group. Returns the generated
   * tokens.
   */
  run(tokens: number, step: number): number {
    if (this.made === 0) this.firstStep = step;
    if (this.left > tokens) this.cuts += 1;
    this.clock += Math.min(tokens, this.left);
    this.left = Math.max(0, this.left - tokens);
    const before = this.made;
    this.made = 0;
    for (const length of this.lengths) this.made += Math.min(length, this.clock);
    return this.made - before;
  }

  /**
   * Throws the tokens away. Each sample gets the length of a sample of the group, drawn in the same way in each replay.
   */
  redraw(): void {
    const { id, recorded } = this;
    this.draws += 1;
    this.lengths = recorded.map((_, index) => recorded[spread(id, this.draws, index) % recorded.length]!);
    this.begin(computeShape(this.lengths));
  }

  private begin({ total, longest }: Shape): void {
    this.clock = this.made = 0;
    this.total = total;
    this.left = longest;
  }
}

interface Shape {
  total: number;
  longest: number;
}

/** Known shapes by recorded lengths, because the same groups are replayed many times. */
const shapes = new WeakMap<readonly number[], Shape>();

function recordedShape(lengths: readonly number[]): Shape {
  const known = shapes.get(lengths);
  if (known !== undefined) return known;
  const shape = computeShape(lengths);
  shapes.set(lengths, shape);
  return shape;
}

function computeShape(lengths: readonly number[]): Shape {
  return { total: lengths.reduce((total, length) => total + length, 0), longest: Math.max(0, ...lengths) };
}

export class ReplayedQueue {
  private groups: ReplayedGroup[] = [];

  counts(step: number): { longtailGroups: number; finishedGroups: number; pinnedGroups: number } {
    let finishedGroups = 0;
    let pinnedGroups = 0;
    for (const group of this.groups) {
      if (group.left === 0) finishedGroups += 1;
      else if (group.pinStep <= step) pinnedGroups += 1;
    }
    return { longtailGroups: this.groups.length, finishedGroups, pinnedGroups };
  }

  /** Takes finished groups first, then groups that a bound pins to the step, then other groups. */
  take(step: number, count: number): { urgent: ReplayedGroup[]; others: ReplayedGroup[] } {
    const finished: ReplayedGroup[] = [];
    const pinned: ReplayedGroup[] = [];
    const rest: ReplayedGroup[] = [];
    for (const group of this.groups) {
      if (group.left === 0) finished.push(group);
      else if (group.pinStep <= step) pinned.push(group);
      else rest.push(group);
    }
    const urgent = [...finished, ...pinned];
    if (urgent.length <= count) {
      const others = rest.splice(0, count - urgent.length);
      this.groups = rest;
      return { urgent, others };
    }
    urgent.length = count;
    const isTaken = new Set(urgent);
    this.groups = this.groups.filter((group) => !isTaken.has(group));
    return { urgent, others: [] };
  }

  /** Adds groups that a round of this step has cut. Groups that were taken from the queue return to its front. */
  add(step: number, taken: readonly ReplayedGroup[], fresh: readonly ReplayedGroup[], rules: RoundRules): void {
    for (const group of [...taken, ...fresh]) {
      const { cuts, firstStep } = group;
      const oldestVersion = group.made > 0 ? firstStep : undefined;
      group.pinStep = pinStep({ cuts, firstStep, oldestVersion }, { step, weightVersion: step }, rules);
    }
    this.groups = [...taken, ...this.groups, ...fresh];
  }
}
