import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { BroomwagonError, type TailPolicy } from '@broomwagon/contracts';
import {
  AUTO_FIELDS,
  chooseAuto,
  type ChosenAuto,
  type ControlInput,
  type ResolvedPolicy,
  resolvePolicy,
  withChoice,
} from '@broomwagon/policies';

/** Approximate time for which a choice of `auto` holds the event loop. */
const SLICE_MS = 10;
/**
 * Time after which a choice is late, with its wait for other choices: it takes the best candidate that it has found.
 */
export const LATE_AFTER_MS = 2_000;
const KEPT_CHOICES = 64;
/** Pause before a repeat of a refused choice: about the time of one or two choices. */
const RETRY_AFTER_MS = 1_000;
/** Less than the number of kept choices, so that each choice is kept while a repeat may ask for it. */
const MAX_WAITING = 32;

/**
 * Replaces `auto` by the policy that it chooses, without blocking other calls: one choice at a time, in slices. Choices
 * are kept, so that the opening of a round gets the choice of its plan even if the choice was late.
 */
@Injectable()
export class PolicyResolver {
  private readonly kept = new Map<string, Promise<ChosenAuto>>();
  private turn: Promise<unknown> = Promise.resolve();
  private waiting = 0;

  /**
   * @param lateAfterMs milliseconds
   * @throws BroomwagonError OVERLOADED
   */
  async resolve(given: TailPolicy, past: ControlInput, lateAfterMs = LATE_AFTER_MS): Promise<ResolvedPolicy> {
    if (given.name !== 'auto') return resolvePolicy(given, past);
    return withChoice(given, await this.choose(given, past, lateAfterMs));
  }

  private choose(given: TailPolicy, past: ControlInput, lateAfterMs: number): Promise<ChosenAuto> {
    // The key has only fields that the choice reads: other fields may change between the plan and the opening. The
    // trainer sets `shortfall`, and the last round is cut and folded.
    const { control, history = [], measured } = past;
    const rounds = history.map(({ acceptedGroups, newGroups, recorded }) => [acceptedGroups, newGroups, recorded]);
    const text = JSON.stringify([AUTO_FIELDS.map((field) => given[field]), control?.auto, rounds, measured]);
    const key = createHash('sha256').update(text).digest('base64');
    const known = this.kept.get(key);
    if (known !== undefined) return known;
    if (this.waiting === MAX_WAITING) {
      throw new BroomwagonError('OVERLOADED', `${MAX_WAITING} choices of tail policies wait; repeat later`, {
        retryAfterMs: RETRY_AFTER_MS,
      });
    }
    const lateAtMs = performance.now() + lateAfterMs;
    const chosen = this.turn.then(() => inSlices(chooseAuto(given, past, () => performance.now() >= lateAtMs)));
    this.waiting += 1;
    this.turn = chosen.catch(() => this.kept.delete(key)).finally(() => (this.waiting -= 1));
    this.kept.set(key, chosen);
    const [oldest] = this.kept.keys();
    if (this.kept.size > KEPT_CHOICES) this.kept.delete(oldest!);
    return chosen;
  }
}

async function inSlices<Result>(steps: Generator<void, Result>): Promise<Result> {
  for (;;) {
    const endsAtMs = performance.now() + SLICE_MS;
    do {
      const { done, value } = steps.next();
      if (done === true) return value;
    } while (performance.now() < endsAtMs);
    await nextTurn();
  }
}
