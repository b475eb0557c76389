import { sampleSeed } from '@broomwagon/engines';
import { SampleIdentities } from '../../lab/engine-simulator/src/tokens/sample-identity';
import type { ResultLine } from '../../lab/reference-trainer/src/results/result-line';

/** Seed of sampling in all tests. */
export const SEED = 0;
const SHORT_TOKENS = 200;
const LONG_TOKENS = 5_000;

/** One prompt with the true length of each of its samples. */
export interface TestPrompt {
  id: string;
  line: number;
  prompt: { text: string };
  domain?: string;
  samples: number;
  /** Tokens of responses: which one a sample has follows from its seed. */
  lengths: number[];
}

/** Prompts with a heavy tail: about every `longEvery`-th sample is long, always the same ones. */
export function dataSet(count: number, samples: number, longEvery = 11): TestPrompt[] {
  return Array.from({ length: count }, (_, position) => ({
    id: `p${position}`,
    line: position + 1,
    domain: ['math', 'code', 'chat'][position % 3]!,
    prompt: { text: `Problem ${position}: what is ${position} times ${position + 1}?` },
    samples,
    lengths: Array.from({ length: samples }, (__, index) => {
      const number = (position * samples + index) * 7 + 3;
      return number % longEvery === 0 ? LONG_TOKENS : SHORT_TOKENS + ((number * 37) % 300);
    }),
  }));
}

/** The file of lengths that the engine simulator reads. */
export function lengthsFile(prompts: readonly TestPrompt[]): string {
  return prompts.map(({ prompt, lengths }) => `${JSON.stringify({ prompt: prompt.text, lengths })}\n`).join('');
}

/** The tokens an undisturbed run of this sample makes; its group has the id of its prompt. */
export function trueTokens(job: string, prompt: TestPrompt, sampleIndex: number): number[] {
  return trueSample(job, prompt, sampleIndex).tokenIds;
}

/** Tokens of an undisturbed sample with their text and log probabilities. */
export function trueSample(
  job: string,
  { id, prompt, lengths }: TestPrompt,
  sampleIndex: number,
): { tokenIds: number[]; text: string; logprobs: number[] } {
  const seed = sampleSeed(SEED, { job, groupId: id, sampleIndex, madeTokens: 0 });
  const { script } = new SampleIdentities().identify({ kind: 'text', ...prompt }, seed);
  const count = lengths[script.sampleKey % lengths.length]!;
  return {
    tokenIds: JSON.parse(`[${script.idList(0, count)}]`) as number[],
    text: script.text(0, count),
    logprobs: script.logprobs(0, count),
  };
}

/** Faults in the results of a whole data set, in words. Empty: every sample occurs once, whole, token by token. */
export function findFaults(
  job: string,
  prompts: readonly TestPrompt[],
  lines: readonly Pick<ResultLine, 'promptId' | 'sampleIndex' | 'tokenIds' | 'segments'>[],
): string[] {
  const faults: string[] = [];
  const left = new Map<string, { prompt: TestPrompt; index: number }>(
    prompts.flatMap((prompt) =>
      Array.from({ length: prompt.samples }, (_, index) => [`${prompt.id}/${index}`, { prompt, index }] as const),
    ),
  );
  for (const { promptId, sampleIndex, tokenIds, segments } of lines) {
    const name = `${promptId}/${sampleIndex}`;
    const sample = left.get(name);
    if (sample === undefined) {
      faults.push(`${name} is not wanted, or came before`);
      continue;
    }
    left.delete(name);
    const expected = trueTokens(job, sample.prompt, sample.index);
    const made = segments.reduce((sum, { tokenCount }) => sum + tokenCount, 0);
    if (made !== expected.length) faults.push(`${name}: segments of ${made} tokens, not ${expected.length}`);
    if (tokenIds === undefined || tokenIds.join() !== expected.join()) faults.push(`${name}: other tokens`);
  }
  faults.push(...[...left.keys()].map((name) => `${name} was never trained`));
  return faults;
}
