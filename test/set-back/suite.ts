import { type SetBackKind, startSetBackRedis } from '@broomwagon/testing';
import { afterAll, describe, inject, it } from 'vitest';
import { createRandom } from '../system/chaos';
import { AT_RANDOM, chosenPairs, type Condition, pairs } from './conditions';
import { runSetBack } from './set-back-run';
import { SetBackSystem } from './set-back-system';
import { examplePrompts } from './trainers';

const PROMPTS = examplePrompts(24, 4);
/** Several data sets, on a busy machine. */
const TIMEOUT_MS = 300_000;

/** Describes the conditions of this kind: a choice in `npm test`, all pairs in `npm run test:faults`. */
export function describeSetBack(kind: SetBackKind): void {
  const conditions = (process.env.SET_BACK === 'all' ? pairs() : chosenPairs())
    .filter((condition) => condition.kind === kind)
    .sort((one, other) => one.payloads.localeCompare(other.payloads));

  describe(`Redis set back in the middle of a data set: ${kind}`, () => {
    let stand: SetBackSystem | undefined;
    afterAll(() => stand?.stop());

    for (const [index, condition] of conditions.entries()) {
      it(
        `each sample is held and counted once: ${formatCondition(condition)}`,
        async ({ task }) => {
          const random = createRandom(inject('seed') + index);
          if (stand?.place !== condition.payloads) {
            await stand?.stop();
            stand = undefined;
            stand = await SetBackSystem.start(await startSetBackRedis(kind, random), condition.payloads, PROMPTS);
          }
          try {
            Object.assign(task.meta, { outcome: await runSetBack(stand, condition, PROMPTS, random) });
          } catch (error) {
            // Leftovers of this condition would fail the next one.
            await stand.stop();
            stand = undefined;
            throw error;
          }
        },
        TIMEOUT_MS,
      );
    }
  });
}

function formatCondition({ payloads, trainer, lostMs, moment, victim }: Condition): string {
  const who = moment === AT_RANDOM ? moment : `${moment}, which ${victim}`;
  return `${trainer} trainer, payloads ${payloads}, ${lostMs} ms, ${who}`;
}
