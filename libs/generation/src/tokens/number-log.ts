/** First capacity: the most numbers of 4 bytes that V8 keeps in its own heap; it allocates longer arrays elsewhere. */
const FIRST_CAPACITY = 16;
/** Most logs of log probabilities stay empty. */
const NONE = new Int32Array(0);

/** A list of numbers: 4 bytes for each number while 4 bytes hold every number exactly, else 8 bytes. */
export class NumberLog {
  private values: Int32Array | Float32Array | Float64Array = NONE;
  private count = 0;

  constructor(private readonly Compact: Int32ArrayConstructor | Float32ArrayConstructor) {}

  get length(): number {
    return this.count;
  }

  /** @param value null is kept as NaN, which JSON writes as null; 0 is the logarithm of probability 1 */
  push(value: number | null): void {
    const { values, count } = this;
    const number = value ?? Number.NaN;
    if (count === values.length) this.copyTo(values instanceof Float64Array ? Float64Array : this.Compact);
    this.values[count] = number;
    if (!Object.is(this.values[count], number) && !(this.values instanceof Float64Array)) {
      this.copyTo(Float64Array);
      this.values[count] = number;
    }
    this.count += 1;
  }

  /** The numbers from an index on. */
  from(start: number): number[] {
    const list: number[] = [];
    for (let index = start; index < this.count; index++) list.push(this.values[index]!);
    return list;
  }

  clear(): void {
    this.values = NONE;
    this.count = 0;
  }

  /** Makes room for a quarter more: thousands of logs are kept at the same time. */
  private copyTo(Kind: Int32ArrayConstructor | Float32ArrayConstructor | Float64ArrayConstructor): void {
    const values = new Kind(Math.ceil(this.count * 1.25) + FIRST_CAPACITY);
    values.set(this.values.subarray(0, this.count));
    this.values = values;
  }
}
