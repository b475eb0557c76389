import { FunctionRunner, type PassedArgs, type Transition, type RedisClient } from '@broomwagon/state';

/** Times of one script with one size of input. */
export interface Timing {
  script: string;
  input: string;
  /**
   * Times of the calls in their order, one list per repeat of the work, microseconds; infinite for a call that loaded
   * the library.
   */
  repeats: number[][];
}

/**
 * Times of the calls, each the least over the repeats of the same work: this leaves out other work of Redis, such as
 * growing a table or waiting for memory on a busy machine.
 */
export function leastTimes({ repeats }: Timing): number[] {
  const calls = Math.max(...repeats.map(({ length }) => length));
  const least = Array.from({ length: calls }, (_, call) =>
    Math.min(...repeats.map((times) => times[call] ?? Infinity)),
  );
  return least.filter(Number.isFinite);
}

/**
 * Runs scripts one at a time and records the time that Redis took for each, without the network. This is the lesser of
 * the CPU time of its main thread, which includes the expiry of keys and other periodic work, and the elapsed time of
 * the call, which includes time taken by other programs of the machine.
 */
export class TimedRunner extends FunctionRunner {
  readonly timings: Map<string, Timing>;
  /** Name of the measured input; absent: nothing is recorded. */
  input?: string;
  private overhead?: number;
  private readonly repeatsOf = new Map<string, number>();
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly connection: RedisClient,
    keyPrefix: string,
    /** Runner that shares its timings with this runner, which has keys under another prefix. */
    other?: TimedRunner,
  ) {
    super(connection, keyPrefix);
    this.timings = other?.timings ?? new Map<string, Timing>();
  }

  override run<Args extends object, Reply>(
    target: Transition<Args, Reply>,
    pool: string,
    args: PassedArgs<Args>,
    ...attachments: Buffer[]
  ) {
    return this.timed(target.name, () => super.run(target, pool, args, ...attachments));
  }

  /** Measures the work under this name; the same name again means another repeat of the same work. */
  async measure<T>(input: string, work: () => Promise<T>): Promise<T> {
    this.input = input;
    this.repeatsOf.set(input, (this.repeatsOf.get(input) ?? 0) + 1);
    try {
      return await work();
    } finally {
      this.input = undefined;
    }
  }

  /** Runs calls one after the other, also calls that are made at once. */
  private timed<T>(script: string, work: () => Promise<T>): Promise<T> {
    const { input } = this;
    if (input === undefined) return work();
    const result = this.last.then(() => this.time(script, input, work));
    this.last = result.catch(() => undefined);
    return result;
  }

  private async time<T>(script: string, input: string, work: () => Promise<T>): Promise<T> {
    const before = await this.spent();
    // A refused call has done its work too.
    const outcome = await work().then(
      (answer) => () => answer,
      (error: unknown) => () => {
        throw error;
      },
    );
    const after = await this.spent();
    this.overhead ??= await this.ownCost();
    // The first call loads the library.
    const isLoaded = after.loads === before.loads;
    const cpu = Math.max(0, Math.round(after.microseconds - before.microseconds - this.overhead));
    this.note(script, input, isLoaded ? Math.min(cpu, after.elapsed - before.elapsed) : Infinity);
    return outcome();
  }

  private note(script: string, input: string, took: number): void {
    const name = `${script} ${input}`;
    const timing = this.timings.get(name) ?? { script, input, repeats: [] };
    const repeat = this.repeatsOf.get(input)! - 1;
    (timing.repeats[repeat] ??= []).push(took);
    for (let earlier = 0; earlier < repeat; earlier++) timing.repeats[earlier] ??= [];
    this.timings.set(name, timing);
  }

  /** CPU time of reading the times itself. */
  private async ownCost(): Promise<number> {
    const costs: number[] = [];
    for (let pair = 0; pair < 50; pair++) {
      const before = await this.spent();
      costs.push((await this.spent()).microseconds - before.microseconds);
    }
    return costs.toSorted((one, other) => one - other)[costs.length / 2]!;
  }

  /** CPU time of the main thread and elapsed time of all function calls so far, both in microseconds. */
  private async spent(): Promise<{ microseconds: number; elapsed: number; loads: number }> {
    const info = await this.connection.info('cpu', 'commandstats');
    const seconds = (kind: string) => Number(new RegExp(`used_cpu_${kind}_main_thread:(\\S+)`).exec(info)?.[1] ?? NaN);
    const loads = Number(/cmdstat_function\|load:calls=(\d+)/.exec(info)?.[1] ?? 0);
    const calls = [...info.matchAll(/cmdstat_fcall(?:_ro)?:calls=\d+,usec=(\d+)/g)];
    const elapsed = calls.reduce((sum, [, microseconds]) => sum + Number(microseconds), 0);
    return { elapsed, microseconds: (seconds('user') + seconds('sys')) * 1_000_000, loads };
  }
}
