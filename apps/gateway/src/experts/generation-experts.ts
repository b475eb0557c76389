import { EXPERTS_FIELD, EXPERTS_START } from '@broomwagon/generation';
import type { Generation } from '../generations/generation';

/** At the end: those of the whole response become a field of its answer. */
export async function reportExperts({ experts, input, engineFields, promptTokens, tokens }: Generation): Promise<void> {
  if (experts === undefined) return;
  const count = (promptTokens ?? 0) + tokens.count;
  const reported = input.packsExperts ? await experts.packed(count) : await experts.whole(count);
  if (reported !== undefined) engineFields[EXPERTS_FIELD] = reported;
  // That of the last call, in which the rows before were not asked for.
  if (engineFields[EXPERTS_START] !== undefined) engineFields[EXPERTS_START] = experts.firstRow;
}
