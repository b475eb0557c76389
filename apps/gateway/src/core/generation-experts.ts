import { EXPERTS_FIELD, EXPERTS_START } from '@broomwagon/generation';
import type { Generation } from './generation';

/** Adds the routed experts of a whole response to the fields of its answer, when the response ends. */
export async function reportExperts({ experts, input, report, tokens }: Generation): Promise<void> {
  if (experts === undefined) return;
  const count = (report.promptTokens ?? 0) + tokens.count;
  const reported = input.packsExperts ? await experts.packed(count) : await experts.whole(count);
  if (reported !== undefined) report.setField(EXPERTS_FIELD, reported);
  // The engine has reported the first row of the last call; the answer also has the rows of earlier calls.
  if (report.fields[EXPERTS_START] !== undefined) report.setField(EXPERTS_START, experts.firstRow);
}
