import type { SetBackKind } from '@broomwagon/testing';
import { afterAll, describe, it } from 'vitest';
import { randomOf } from '../system/chaos';
import { AT_RANDOM, type Condition, pairs, values } from './conditions';
import { runSetBack } from './set-back-run';
import { SetBackSystem } from './set-back-system';
import { examplePrompts } from './trainers';

const PROMPTS = examplePrompts(24, 4);

/** The conditions of this kind: those of `npm test`, or all of `npm run test:faults`. */
export function describeSetBack(kind: SetBackKind): void {
  // Not yet in `npm test`: what Redis loses is not yet noticed.
  const { SET_BACK } = process.env;
  const conditions = (SET_BACK === 'all' ? pairs() : SET_BACK === 'values' ? values() : [])
    .filter((condition) => condition.kind === kind)
    .sort((one, other) => one.payloads.localeCompare(other.payloads));

  describe.skipIf(conditions.length === 0)(`Redis set back in the middle of a data set: ${kind}`, () => {
    let stand: SetBackSystem | undefined;
    afterAll(() => stand?.stop());

    for (const [index, condition] of conditions.entries()) {
      it(`each sample is held once, or named as missing: ${nameOf(condition)}`, async ({ task }) => {
        const random = randomOf(index);
        if (stand?.condition.payloads !== condition.payloads) {
          await stand?.stop();
          stand = undefined;
          stand = await SetBackSystem.start(condition, PROMPTS, random);
        }
        try {
          Object.assign(task.meta, { outcome: await runSetBack(stand, condition, PROMPTS, random) });
        } catch (error) {
          // What is left over would be held against the next condition.
          await stand.stop();
          stand = undefined;
          throw error;
        }
      });
    }
  });
}

function nameOf({ payloads, trainer, lostMs, moment, victim }: Condition): string {
  const who = moment === AT_RANDOM ? moment : `${moment}, which ${victim}`;
  return `${trainer} trainer, payloads ${payloads}, ${lostMs} ms, ${who}`;
}
