import type { Generated } from '@broomwagon/generation';
import type { Generation } from '../generations/generation';
import { EXPERTS_FIELD, EXPERTS_START } from './routed-experts';

/**
 * After a call: its routed experts. Only the end of a response has them, so they are removed from the fields of chunks.
 * @param from row from which on the call was asked
 */
export function takeExperts(
  { experts, engineFields, promptTokens, tokens }: Generation,
  { result }: Generated,
  from: number,
): void {
  const { [EXPERTS_FIELD]: reported } = engineFields;
  const { promptTokens: prompt, completionTokens } = result?.usage ?? {};
  delete engineFields[EXPERTS_FIELD];
  experts!.take({
    reported: result && reported,
    engineTokens: prompt === undefined ? undefined : prompt + completionTokens!,
    keptTokens: (promptTokens ?? 0) + tokens.count,
    from,
  });
}

/** At the end: those of the whole response become a field of its answer. */
export async function reportExperts({ experts, input, engineFields, promptTokens, tokens }: Generation): Promise<void> {
  if (experts === undefined) return;
  const count = (promptTokens ?? 0) + tokens.count;
  const reported = input.packsExperts ? await experts.packed(count) : await experts.whole(count);
  if (reported !== undefined) engineFields[EXPERTS_FIELD] = reported;
  // That of the last call, in which the rows before were not asked for.
  if (engineFields[EXPERTS_START] !== undefined) engineFields[EXPERTS_START] = experts.firstRow;
}
