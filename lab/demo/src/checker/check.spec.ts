import type { AttemptId } from '@broomwagon/contracts';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { startEngine } from '../../../engine-simulator/src/test-engine';
import { checkResults } from './check';
import { decodeBy } from './decode-by-engine';
import { EngineClient } from './engine-client';

interface Line {
  promptId: string;
  sampleIndex: number;
  finishReason: string;
  tokenIds?: number[];
  segments: { weightVersion: number; serverId: string; attempt: AttemptId; tokenCount: number }[];
}

function line(promptId: string, sampleIndex: number): Line {
  return {
    promptId,
    sampleIndex,
    finishReason: 'stop',
    tokenIds: [1, 2, 3],
    segments: [
      { weightVersion: 0, serverId: 'a', attempt: '1-a', tokenCount: 1 },
      { weightVersion: 1, serverId: 'b', attempt: '3-a', tokenCount: 2 },
    ],
  };
}

function complete(prompts: number, samples: number): Line[] {
  return Array.from({ length: prompts * samples }, (_, index) =>
    line(`p${Math.floor(index / samples)}`, index % samples),
  );
}

const promptLines = (prompts: number) =>
  Array.from({ length: prompts }, (_, index) => `{"id":"p${index}","prompt":"x"}`);
const texts = (lines: readonly unknown[]) => lines.map((one) => JSON.stringify(one));
const check = (prompts: number, lines: readonly unknown[], options = {}) =>
  checkResults(promptLines(prompts), texts(lines), options);

describe('the checker', () => {
  it('accepts every sample of every prompt exactly once, in any order', async () => {
    expect(await check(3, complete(3, 4).toReversed())).toMatchObject({
      ok: true,
      prompts: 3,
      samplesPerPrompt: 4,
      expected: 12,
      results: 12,
    });
  });

  it('finds a text that is not the text of its ids, and an end that is lost without a stop text', async () => {
    const engine = await startEngine('vllm');
    const decode = decodeBy(new EngineClient(`${engine.url}/v1`));
    const tokenIds = [1_000_007, 1_000_012, 1_000_003];
    const outcome = (text: string, stopReason?: string | number) =>
      check(1, [{ ...line('p0', 0), tokenIds, text, stopReason }], { decode });
    for (const [text, stopReason] of [
      [' t7 t12 t3', undefined],
      [' t7 t1', '2 t'],
      [' t7 t12 t', ' t'],
      [' t7 t12', 1_000_003],
      [' t7', 'tool_calls'],
    ] as const) {
      expect(await outcome(text, stopReason), text).toMatchObject({ ok: true });
    }
    for (const [text, stopReason] of [
      [' t7 t7 t12 t3', undefined],
      [' t7 t3', undefined],
      [' t7 t1', undefined],
      [' t7', '2 t'],
      [' t7', 1_000_003],
    ] as const) {
      expect(await outcome(text, stopReason), text).toMatchObject({ ok: false, inconsistent: 1 });
    }
    await engine.close();
    await expect(outcome(' t7')).rejects.toThrow();
  });

  it('accepts a text without the special tokens of its ids, which vLLM decodes only beside responses', async () => {
    const names: Record<number, string> = { 0: '<s>', 1: '<|im_end|>', 7: ' a', 8: '<b>', 9: ' <c' };
    const server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        if (request.url === '/v1/models') return response.end('{"data":[{"id":"m"}]}');
        const { tokens, prompt } = JSON.parse(Buffer.concat(parts).toString()) as { tokens: number[]; prompt: string };
        const ids = Object.keys(names).filter((id) => names[Number(id)] === prompt);
        const answer =
          request.url === '/tokenize'
            ? { tokens: ids.map(Number) }
            : { prompt: tokens.map((id) => names[id]).join('') };
        return response.end(JSON.stringify(answer));
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const decode = decodeBy(new EngineClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
    const outcome = (tokenIds: number[], text: string) =>
      check(
        1,
        [
          {
            ...line('p0', 0),
            tokenIds,
            text,
            segments: [{ ...line('p0', 0).segments[0], tokenCount: tokenIds.length }],
          },
        ],
        {
          decode,
        },
      );
    expect(await outcome([7, 0, 8, 7, 1], ' a<b> a')).toMatchObject({ ok: true });
    expect(await outcome([7, 9, 1], ' a <c')).toMatchObject({ ok: true });
    expect(await outcome([7, 0, 7, 7, 1], ' a a')).toMatchObject({ ok: false, inconsistent: 1 });
    server.close();
  });

  it('accepts a text without the incomplete character at which the budget has cut it', async () => {
    const outcome = (text: string, decoded: string) =>
      check(1, [{ ...line('p0', 0), text }], { decode: () => Promise.resolve(decoded) });
    expect(await outcome('ab', 'ab\uFFFD')).toMatchObject({ ok: true });
    expect(await outcome('a', 'ab\uFFFD')).toMatchObject({ ok: false, inconsistent: 1 });
  });

  it('finds any removed and any repeated line', async () => {
    const size = fc.integer({ min: 1, max: 6 });
    await fc.assert(
      fc.asyncProperty(size, size, fc.nat(), fc.boolean(), async (prompts, samples, pick, remove) => {
        const lines = complete(prompts, samples);
        const at = pick % lines.length;
        if (remove) lines.splice(at, 1);
        else lines.push(lines[at]!);
        const outcome = await check(prompts, lines, { samples });
        expect(outcome).toMatchObject({ ok: false, lost: remove ? 1 : 0, duplicated: remove ? 0 : 1 });
      }),
    );
  });

  it('infers the number of samples, and still finds a removed line of several prompts', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 2, max: 5 }),
        fc.integer({ min: 1, max: 4 }),
        fc.nat(),
        async (prompts, samples, pick) => {
          const lines = complete(prompts, samples);
          lines.splice(pick % lines.length, 1);
          expect(await check(prompts, lines)).toMatchObject({ ok: false, lost: 1 });
        },
      ),
    );
  });

  it('counts all samples as lost when there are no results', async () => {
    expect(await check(2, [])).toMatchObject({ ok: false, lost: 2 });
    expect(await check(2, [], { samples: 3 })).toMatchObject({ ok: false, lost: 6 });
  });

  it('checks only the first prompts with the option `first`', async () => {
    expect(await check(5, complete(2, 2), { first: 2 })).toMatchObject({ ok: true, prompts: 2 });
    expect(await check(5, complete(2, 2))).toMatchObject({ ok: false, lost: 6 });
  });

  it('names prompts without an id after their line', async () => {
    const outcome = await checkResults(
      ['{"prompt":"a"}', '', '{"prompt":"b"}'],
      texts([line('line-1', 0), line('line-3', 0)]),
    );
    expect(outcome.ok).toBe(true);
  });

  it.each([
    ['unknown', line('other', 0)],
    ['unknown', line('p0', 7)],
    ['malformed', { promptId: 'p0' }],
    ['malformed', { ...line('p0', 0), sampleIndex: -1 }],
    ['malformed', { ...line('p0', 0), finishReason: 'abort' }],
    ['inconsistent', { ...line('p0', 0), tokenIds: [1] }],
    ['inconsistent', { ...line('p0', 0), segments: [{ attempt: '1-a', weightVersion: 0 }] }],
    ['inconsistent', { ...line('p0', 0), segments: line('p0', 0).segments.toReversed() }],
  ])('counts a line as %s', async (kind, wrong) => {
    expect(await check(1, [...complete(1, 2), wrong], { samples: 2 })).toMatchObject({ ok: false, [kind]: 1 });
  });

  it('counts a line that is no JSON as malformed', async () => {
    expect(await checkResults(promptLines(1), ['{"promptId"'])).toMatchObject({ ok: false, malformed: 1, lost: 1 });
  });
});
