import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { BroomwagonError, type TailPolicy } from '@broomwagon/contracts';
import { type ControlInput, type ResolvedPolicy, resolvePolicy, resolveSteps } from '@broomwagon/policies';

/** For this long a choice of `auto` keeps the event loop for itself, about. */
const SLICE_MS = 10;
/** After this time, with that of waiting for other choices, a choice is late: it takes the best that it has found. */
export const LATE_AFTER_MS = 2_000;
const KEPT_CHOICES = 64;
/** Fewer than are kept, so that each choice is kept while a repeat may ask for it. */
const MOST_WAITING = 32;

/**
 * Replaces `auto` by the policy that it chooses, without blocking other calls: one choice at a time, in slices. Choices
 * are kept, so that the opening of a round has that of its plan even if it was late.
 */
@Injectable()
export class PolicyResolver {
  private readonly kept = new Map<string, Promise<ResolvedPolicy>>();
  private turn: Promise<unknown> = Promise.resolve();
  private waiting = 0;

  /**
   * @param lateAfterMs milliseconds
   * @throws BroomwagonError OVERLOADED
   */
  async resolve(given: TailPolicy, past: ControlInput, lateAfterMs = LATE_AFTER_MS): Promise<ResolvedPolicy> {
    if (given.name !== 'auto') return resolvePolicy(given, past);
    const { control, history, measured } = past;
    // What else the ledger has may change while the last round is folded, between the plan and the opening.
    const costs = measured && [measured.offPolicyShare, measured.lengthBias, measured.waste.share];
    const text = JSON.stringify([given, control, history, costs]);
    const key = createHash('sha256').update(text).digest('base64');
    const known = this.kept.get(key);
    if (known !== undefined) return known;
    if (this.waiting === MOST_WAITING) {
      throw new BroomwagonError('OVERLOADED', `${MOST_WAITING} choices of tail policies wait; repeat later`);
    }
    const lateAtMs = performance.now() + lateAfterMs;
    const resolved = this.turn.then(() => inSlices(resolveSteps(given, past, () => performance.now() >= lateAtMs)));
    this.waiting += 1;
    this.turn = resolved.catch(() => this.kept.delete(key)).finally(() => (this.waiting -= 1));
    this.kept.set(key, resolved);
    const [oldest] = this.kept.keys();
    if (this.kept.size > KEPT_CHOICES) this.kept.delete(oldest!);
    return resolved;
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
