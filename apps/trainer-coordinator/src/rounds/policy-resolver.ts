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

/** Approximate time for which a choice of `auto` holds the event loop before it yields, milliseconds. */
const SLICE_MS = 10;
/**
 * Time after which a choice is late, including its wait for other choices, milliseconds. A late choice takes the best
 * candidate found so far.
 */
export const LATE_AFTER_MS = 2_000;
const KEPT_CHOICES = 64;
/** Pause before a caller repeats a refused choice, milliseconds: one or two choices take about this time. */
const RETRY_AFTER_MS = 1_000;
/** Maximum waiting choices: fewer than kept choices, so that a choice is still kept when a caller repeats its call. */
const MAX_WAITING = 32;

/**
 * Replaces `auto` by the policy that `auto` chooses. One choice runs at a time, in slices, so that other calls
 * continue. Choices are kept, so that `round.open` uses the choice of `round.next`, also if the choice was late.
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
    // The key has only the fields that the choice reads. Other fields may change between `round.next` and `round.open`,
    // for example when the last round is folded.
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
