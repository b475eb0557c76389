import { stepSeconds } from './engine-parameters';
import type { EngineModel } from './engine-model';

/** Steps after which the time of a step is read again: the KV cache has grown by less than 1 % of a step until then. */
const STEPS_PER_SEGMENT = 200;

/**
 * Engines that decode in lockstep, as the data-parallel ranks of a mixture of experts do: a common step takes as long
 * as the slowest engine needs, tau(largest batch, fullest KV cache), and a rank without work waits for the others. All
 * engines wait for the longest prefill.
 */
export class LockstepEngines<Id = string> {
  constructor(readonly engines: readonly EngineModel<Id>[]) {
    if (engines.length === 0) throw new RangeError('lockstep needs an engine');
    if (engines[0]!.parameters.stepTokens !== undefined)
      throw new RangeError('lockstep takes no engine with stepTokens');
  }

  /** Simulated seconds until the next possible event; Infinity when nothing runs. */
  secondsToNextEvent(): number {
    const { steps, stepSeconds: seconds, debtSeconds } = this.segment();
    return steps === Infinity ? Infinity : debtSeconds + steps * seconds;
  }

  /**
   * Moves time on, at most to the next event and at most by `limit` seconds. `onFinish` gets the rank and the id of
   * each sequence that ends. Returns the seconds used.
   */
  advance(limit: number, onFinish: (rank: number, id: Id) => void): number {
    const { steps, stepSeconds: seconds, debtSeconds } = this.segment();
    const whole = steps === Infinity ? limit : Math.min(limit, debtSeconds + steps * seconds);
    const decoded = steps === Infinity ? 0 : Math.min(steps, Math.max(0, whole - debtSeconds) / seconds);
    const isWhole = whole === debtSeconds + steps * seconds;
    this.engines.forEach((engine, rank) => {
      for (const id of engine.advanceInLockstep(isWhole ? steps : decoded, whole)) onFinish(rank, id);
    });
    // An interrupted prefill continues in the next call.
    if (whole < debtSeconds) for (const engine of this.engines) engine.stall(debtSeconds - whole);
    return whole;
  }

  private segment(): { steps: number; stepSeconds: number; debtSeconds: number } {
    let [batch, kvTokens, steps, debtSeconds] = [0, 0, Infinity, 0];
    for (const engine of this.engines) {
      if (engine.runningCount === 0) continue;
      batch = Math.max(batch, engine.runningCount);
      kvTokens = Math.max(kvTokens, engine.contextTokens);
      debtSeconds = Math.max(debtSeconds, engine.debtSeconds);
      steps = Math.min(steps, engine.stepsToNextEvent());
    }
    if (batch === 0) return { steps: Infinity, stepSeconds: 0, debtSeconds: 0 };
    const { parameters } = this.engines[0]!;
    steps = Math.min(steps, STEPS_PER_SEGMENT);
    const growing = kvTokens + (batch * steps) / 2;
    return { steps, stepSeconds: stepSeconds(parameters, batch, growing), debtSeconds };
  }
}
