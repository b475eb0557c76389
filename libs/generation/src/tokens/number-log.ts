/** Length of the first part: the most numbers of 4 bytes that V8 keeps in its own heap; longer arrays are elsewhere. */
const FIRST_LENGTH = 16;
const MAX_LENGTH = 512;

type Part = Int32Array | Float32Array | Float64Array;

/** Most logs of log probabilities stay empty. */
const NONE = new Int32Array(0);

/**
 * A list of numbers that grows: 4 bytes for each number while 4 bytes hold every number exactly, else 8 bytes. The list
 * is kept in parts, because a copy of all numbers whenever the list grows costs more than the numbers.
 */
export class NumberLog {
  /** Parts before the last one; all of them are full. */
  private full: Part[] = [];
  private fullLength = 0;
  /** The last part, and how many of its places are taken. */
  private last: Part = NONE;
  private taken = 0;

  constructor(private readonly Compact: Int32ArrayConstructor | Float32ArrayConstructor) {}

  get length(): number {
    return this.fullLength + this.taken;
  }

  /** @param value null is kept as NaN, which JSON writes as null; 0 is the logarithm of probability 1 */
  push(value: number | null): void {
    const number = value ?? Number.NaN;
    if (this.taken === this.last.length) this.extend();
    this.last[this.taken] = number;
    if (!Object.is(this.last[this.taken], number) && !(this.last instanceof Float64Array)) {
      this.last = new Float64Array(this.last);
      this.last[this.taken] = number;
    }
    this.taken += 1;
  }

  /** The numbers from an index on. */
  from(start: number): number[] {
    const list: number[] = [];
    let skipped = start;
    for (const part of this.full) {
      for (let index = skipped; index < part.length; index++) list.push(part[index]!);
      skipped = Math.max(0, skipped - part.length);
    }
    for (let index = skipped; index < this.taken; index++) list.push(this.last[index]!);
    return list;
  }

  clear(): void {
    this.full = [];
    this.fullLength = 0;
    this.last = NONE;
    this.taken = 0;
  }

  /** Adds a part as long as all parts before, up to a limit: thousands of logs are kept at the same time. */
  private extend(): void {
    const { last } = this;
    if (last.length > 0) this.full.push(last);
    this.fullLength += last.length;
    const Kind = last instanceof Float64Array ? Float64Array : this.Compact;
    this.last = new Kind(Math.min(MAX_LENGTH, Math.max(FIRST_LENGTH, this.fullLength)));
    this.taken = 0;
  }
}
