import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startEngine } from '../../../engine-simulator/src/test-engine';
import { createEngineAdapter } from '../../../../libs/engines/src/detect-engine';
import { checkResults } from './check';
import { EngineClient } from './engine-client';
import { JoinCheck } from './join-check';
import { scoreBy, type Scorer } from './score-by-engine';

interface Line {
  promptId: string;
  sampleIndex: number;
  finishReason: string;
  tokenIds: number[];
  logprobs: number[];
  segments: { weightVersion: number; toWeightVersion?: number; attempt: string; tokenCount: number }[];
}

const PROMPTS = [
  { id: 'text', prompt: 'Natalia sold clips to 48 of her friends.' },
  { id: 'ids', promptTokenIds: [5, 6, 7] },
  { id: 'chat', messages: [{ role: 'user' as const, content: 'How many clips?' }] },
];

/** Sample with its tokens in parts of these sizes, each with weights of its own. */
function buildLine(
  promptId: string,
  sampleIndex: number,
  made: { tokenIds: number[]; logprobs: number[] },
  cuts: number[],
) {
  const { tokenIds, logprobs } = made;
  const bounds = [0, ...cuts, tokenIds.length];
  const segments = bounds
    .slice(1)
    .map((end, index) => ({ weightVersion: index, attempt: `${index + 1}-a`, tokenCount: end - bounds[index]! }));
  return { promptId, sampleIndex, finishReason: 'stop', tokenIds, logprobs, segments };
}

/** The line with the token before its first join left out, or repeated. */
function harm(line: Line, kind: 'lost' | 'repeated'): Line {
  const [first, ...others] = line.segments as [Line['segments'][0], ...Line['segments']];
  const at = first.tokenCount - 1;
  const change = <T>(list: T[]): T[] => (kind === 'lost' ? list.toSpliced(at, 1) : list.toSpliced(at, 0, list[at]!));
  const tokenCount = first.tokenCount + (kind === 'lost' ? -1 : 1);
  const segments = [{ ...first, tokenCount }, ...others];
  return { ...line, tokenIds: change(line.tokenIds), logprobs: change(line.logprobs), segments };
}

describe.each(['vllm', 'sglang'] as const)('the check of joins with %s', (dialect) => {
  // The chat route of SGLang returns no token ids.
  const prompts = dialect === 'vllm' ? PROMPTS : PROMPTS.slice(0, 2);
  let engine: Awaited<ReturnType<typeof startEngine>>;
  let lines: Line[];

  beforeAll(async () => {
    engine = await startEngine(dialect, { lengths: { name: 'equal', getLength: () => 200 }, speed: 1_000 });
    const adapter = createEngineAdapter(dialect, engine.url);
    const generate = async (
      { id, prompt: text, promptTokenIds, messages }: (typeof PROMPTS)[number],
      index: number,
    ) => {
      const { tokenIds, logprobs } = await adapter.generate({
        engineRequestId: `${id}-${index}`,
        prompt: { text, promptTokenIds, messages },
        maxTokens: 200,
        sampling: { seed: index, logprobs: true },
      });
      const cuts = [[], [100], [100, 190]][index]!;
      return buildLine(id, index, { tokenIds: tokenIds!, logprobs: logprobs as number[] }, cuts);
    };
    lines = await Promise.all(prompts.flatMap((prompt) => [0, 1, 2].map((index) => generate(prompt, index))));
    // Whole samples of the later weights, by which their noise is known.
    for (const [version, line] of [lines[0]!, lines[3]!].entries()) {
      lines.push({
        ...line,
        sampleIndex: 3 + version,
        segments: [{ ...line.segments[0]!, weightVersion: 1 + version }],
      });
    }
  });
  afterAll(() => engine.close());

  const check = async (changed: Line[], scorer?: Scorer) => {
    const joins = new JoinCheck(scorer ?? (await scoreBy(new EngineClient(`${engine.url}/v1`))), 100);
    const texts = changed.map((line) => JSON.stringify(line));
    const outcome = await checkResults(
      prompts.map((prompt) => JSON.stringify(prompt)),
      texts,
      { joins },
    );
    return { problems: outcome.problems.filter((problem) => !problem.startsWith('lost')), joins: outcome.joins! };
  };

  it('finds nothing in results whose samples are continued without a fault, and sees tokens left out', async () => {
    const { problems, joins } = await check(lines);
    expect(problems).toEqual([]);
    expect(joins).toEqual({
      resumed: 2 * prompts.length,
      whole: prompts.length + 2,
      joins: 3 * prompts.length,
      misfits: 0,
      elsewhere: 0,
      largestFit: 0,
      control: { harmed: lines.length, found: lines.length },
      skipped: [],
    });
  });

  it.each(['lost', 'repeated'] as const)('names each join at which a token is %s', async (kind) => {
    for (const [index, line] of lines.entries()) {
      if (line.segments.length === 1) continue;
      const { problems, joins } = await check(lines.with(index, harm(line, kind)));
      expect(joins.misfits).toBe(1);
      expect(problems).toEqual([
        expect.stringMatching(
          new RegExp(
            `^results line ${index + 1}: a token is lost or repeated before token ${kind === 'lost' ? 99 : 101},`,
          ),
        ) as string,
      ]);
    }
  });

  it('compares no tokens of weights that the engine does not have, and says how many', async () => {
    // Log probabilities of the tokens that weights 2 have generated.
    const others = lines.map((line) => {
      const from = line.segments[0]!.weightVersion === 2 ? 0 : line.segments.length === 3 ? 190 : 200;
      return { ...line, logprobs: line.logprobs.map((logprob, at) => (at < from ? logprob : -4)) };
    });
    const { problems, joins } = await check(others);
    expect(problems).toEqual([]);
    expect(joins).toMatchObject({ joins: 2 * prompts.length, misfits: 0, skipped: [{ tokens: 10 * prompts.length }] });
    expect(joins.skipped[0]!.reason).toMatch(/^weights 2: 3\.\d\d nats everywhere/);
  });

  it('compares no tokens without log probabilities, and none of an attempt in which the weights changed', async () => {
    const [whole, one, two] = lines.slice(0, 3) as [Line, Line, Line];
    const { logprobs: _, ...without } = one;
    const changed = { ...two, segments: two.segments.map((segment) => ({ ...segment, toWeightVersion: 3 })) };
    const { problems, joins } = await check([whole, without as Line, changed]);
    expect(problems).toEqual([]);
    expect(joins).toMatchObject({ resumed: 1, joins: 0, misfits: 0 });
    expect(joins.skipped.map(({ tokens }) => tokens)).toEqual([200, 100]);
  });

  it('fails when the engine scores samples with a token left out as it scores others', async () => {
    const blind: Scorer = {
      tokenize: () => Promise.resolve([1]),
      score: (_, response) => Promise.resolve(response.map((id) => -(id % 1_000) / 1_000)),
    };
    const { problems, joins } = await check(lines, blind);
    expect(joins).toMatchObject({ misfits: 0, control: { harmed: lines.length, found: 0 } });
    expect(problems).toEqual([expect.stringMatching(/sees nothing on this engine: 0 of /) as string]);
  });
});
