import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { sampleSeed } from '@broomwagon/engines';
import { LENGTH_PRESETS, responseLength } from '@broomwagon/models';
import { describe, expect, it } from 'vitest';
import type { PromptRecord } from '../../../reference-trainer/src/prompts/prompt-record';
import type { ResultLine } from '../../../reference-trainer/src/results/result-line';
import { EqualLengths } from './equal-lengths';

const folder = resolve('examples/equal-lengths');
const python = process.env.CLIENT_PYTHON ?? 'python3';
const hasPython = spawnSync(python, ['-c', 'import sys; sys.exit(sys.version_info < (3, 10))']).status === 0;

const choice = { preset: 'math-short-8k', seed: 7, samples: 4, maxTokens: 2_000 } as const;
const dataSet: PromptRecord[] = [
  { id: 'a', line: 1, prompt: { text: 'How many?', engineFields: { vllm_xargs: { other: 1 }, top_k: 5 } } },
  { id: 'b\u00e9', line: 2, domain: 'd', prompt: { messages: [{ role: 'user', content: 'Why?' }] } },
];
const tokenize = ({ prompt = '' }: { prompt?: string }) => Promise.resolve([1, 2, prompt.length]);
const create = (records = dataSet) => EqualLengths.create(records, choice, tokenize);
const drawLengths = (promptKey: string) =>
  [0, 1, 2, 3].map((sampleIndex) =>
    Math.min(2_000, responseLength(LENGTH_PRESETS['math-short-8k'], { seed: 7, promptKey, sampleIndex })),
  );

describe('equal lengths', () => {
  it('travel with the token ids of each prompt, beside its own fields', async () => {
    const prompts = (await create()).forJob('job');
    expect(prompts).toEqual([
      {
        id: 'a',
        line: 1,
        prompt: {
          promptTokenIds: [1, 2, 9],
          engineFields: {
            top_k: 5,
            ignore_eos: true,
            vllm_xargs: {
              other: 1,
              broomwagon_lengths: drawLengths('a'),
              broomwagon_prompt_tokens: 3,
              broomwagon_seed_of: '7\njob\na',
            },
          },
        },
      },
      expect.objectContaining({ id: 'b\u00e9', domain: 'd' }),
    ]);
  });

  it('are not for chats with fields of the engine', async () => {
    const [, chat] = dataSet as [PromptRecord, PromptRecord];
    const withTools = { ...chat, prompt: { ...chat.prompt, engineFields: { tools: [] } } };
    await expect(create([withTools])).rejects.toThrow('line 2 of the prompts has messages and engineFields');
  });

  it('are counted as others where a sample has another one, in whatever order the samples ended', async () => {
    const written: string[] = [];
    const sink = {
      writeRound: (_: unknown, lines: readonly ResultLine[]) => {
        written.push(...lines.map(({ promptId }) => promptId));
        return Promise.resolve();
      },
    };
    const watched = (await create()).watch(sink);
    const lines = (promptId: string, lengths: number[]) =>
      lengths.map((length, sampleIndex) => {
        const segments = [{ tokenCount: 10 }, { tokenCount: length - 10 }];
        return { promptId, sampleIndex, segments } as ResultLine;
      });
    await watched.writeRound({ roundId: 'r', step: 1 }, lines('a', drawLengths('a').toReversed()));
    expect(watched.others).toBe(0);
    const [first, ...others] = drawLengths('b\u00e9') as [number, ...number[]];
    await watched.writeRound({ roundId: 'r', step: 2 }, lines('b\u00e9', [first, ...others].with(0, 9_999)));
    expect(watched.others).toBeGreaterThan(0);
    expect(written).toHaveLength(8);
  });

  describe.skipIf(!hasPython)('in the middleware for vLLM', () => {
    it('are found by the seeds that workers send, whatever a sample has already', async () => {
      const cases = (await create()).forJob('job').flatMap(({ id, prompt: { promptTokenIds, engineFields } }) =>
        drawLengths(id).flatMap((length, sampleIndex) =>
          [0, 1, length - 1].map((madeTokens) => ({
            rest: length - madeTokens,
            body: {
              prompt: [...promptTokenIds!, ...Array<number>(madeTokens).fill(9)],
              seed: sampleSeed(7, { job: 'job', groupId: id, sampleIndex, madeTokens }),
              max_tokens: 2_000 - madeTokens,
              ...engineFields,
            },
          })),
        ),
      );
      const program =
        'import json, sys; from equal_lengths import with_length; ' +
        'print(json.dumps([with_length(body) for body in json.load(sys.stdin)]))';
      const { stdout, stderr } = spawnSync(python, ['-B', '-c', program], {
        cwd: folder,
        input: JSON.stringify(cases.map(({ body }) => body)),
        encoding: 'utf8',
      });
      expect(stderr).toBe('');
      const changed = JSON.parse(stdout) as { max_tokens: number; seed?: number; ignore_eos: boolean }[];
      expect(changed.map((body) => body.max_tokens)).toEqual(cases.map(({ rest }) => rest));
      for (const body of changed) {
        expect(body).not.toHaveProperty('seed');
        expect(body.ignore_eos).toBe(true);
      }
    });

    it('pass the tests of the middleware', () => {
      const { stderr, status } = spawnSync(python, ['-B', '-m', 'unittest', 'discover', 'tests'], {
        cwd: folder,
        encoding: 'utf8',
      });
      expect(status, stderr).toBe(0);
    });
  });
});
