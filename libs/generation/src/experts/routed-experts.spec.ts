import { OpaqueText, withOpaqueTexts } from '@broomwagon/engines';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { buildFileHeader } from './expert-rows';
import { RoutedExperts } from './routed-experts';

/** A Base64 text in parts of some characters each. */
function toOpaqueText(data: Buffer, partLength: number): OpaqueText {
  const characters = Buffer.from(data.toString('base64'));
  const count = Math.ceil(characters.length / partLength);
  return new OpaqueText(
    Array.from({ length: count }, (_, index) => characters.subarray(index * partLength, (index + 1) * partLength)),
  );
}

/** Bytes of an OpaqueText; checks that it is one text of Base64 without padding inside. */
function decodeBytes(text: unknown): Buffer {
  expect(text).toBeInstanceOf(OpaqueText);
  const characters = Buffer.concat((text as OpaqueText).parts).toString();
  const bytes = Buffer.from(characters, 'base64');
  expect(characters).toBe(bytes.toString('base64'));
  return bytes;
}

const asked = (more: object = {}): RoutedExperts =>
  RoutedExperts.of({ promptTokenIds: [1], engineFields: { return_routed_experts: true, ...more } })!;

/** Rows [from, to) of a call; each has its number and the number of the call. */
function buildRows(call: number, from: number, to: number, width: number, bytes = 4): Buffer {
  const rows = Array.from({ length: to - from }, (_, index) => {
    const row = Buffer.alloc(width * bytes, call);
    row.writeUIntLE((from + index) & 0xff, 0, 1);
    return row;
  });
  return Buffer.concat(rows);
}

const npy = (data: Buffer, shape: number[], descr = '|u1'): Buffer =>
  Buffer.concat([buildFileHeader({ descr, shape }), data]);

function withHeaderLength(file: Buffer, length: number): Buffer {
  file.writeUInt16LE(length, 8);
  return file;
}

const call = fc.record({
  tokens: fc.nat(12),
  /** Tokens at the end of the call that the response has not kept. */
  dropped: fc.nat(3),
  reports: fc.boolean(),
  /** The engine knows `routed_experts_start_len`. */
  honours: fc.boolean(),
  partLength: fc.integer({ min: 1, max: 40 }),
});

describe('routed experts of a response over several calls', () => {
  it.each(['sglang', 'vllm'] as const)('have a row of the first call that has reported it: %s', async (dialect) => {
    const drawn = fc.record({
      calls: fc.array(call, { minLength: 1, maxLength: 4 }),
      prompt: fc.integer({ min: 3, max: 9 }),
      start: dialect === 'vllm' ? fc.constant(0) : fc.integer({ min: 0, max: 1 }),
      width: fc.integer({ min: 1, max: 7 }),
    });
    await fc.assert(
      fc.asyncProperty(drawn, async ({ calls, prompt, start, width }) => {
        const experts = asked(start > 0 ? { routed_experts_start_len: start } : {});
        const bytes = dialect === 'vllm' ? 1 : 4;
        let kept = 0;
        let expected = Buffer.alloc(0);
        for (const [index, { tokens, dropped, reports, honours, partLength }] of calls.entries()) {
          const from = experts.nextRow(dialect);
          const engineTokens = prompt + kept + tokens;
          kept += Math.max(0, tokens - dropped);
          const begin = honours ? from : start;
          const data = buildRows(index + 1, begin, engineTokens - 1, width, bytes);
          const file = dialect === 'vllm' ? npy(data, [engineTokens - 1, width, 1]) : data;
          const reported = reports ? toOpaqueText(file, partLength) : undefined;
          experts.take({ reported, engineTokens, keptTokens: prompt + kept, from });
          if (!reports) continue;
          const size = width * bytes;
          const whole = buildRows(index + 1, start, engineTokens - 1, width, bytes);
          const rows = prompt + kept - 1 - start;
          expected = Buffer.concat([expected, whole.subarray(expected.length)]).subarray(0, rows * size);
        }
        const found = await experts.whole(prompt + kept);
        const rows = prompt + kept - 1 - start;
        const isWhole = expected.length === rows * width * bytes;
        expect(isWhole || !calls.at(-1)!.reports).toBe(true);
        if (!isWhole) return void expect(found).toBeUndefined();
        const all = dialect === 'vllm' ? npy(expected, [rows, width, 1]) : expected;
        expect(decodeBytes(found).equals(all)).toBe(true);
        if (dialect === 'sglang') return void expect(await experts.packed(prompt + kept)).toBeNull();
        const packed = (await experts.packed(prompt + kept))!;
        expect([packed.shape, packed.dtype]).toEqual([[rows, width, 1], 'uint8']);
        expect(decodeBytes(packed.data).equals(expected)).toBe(true);
      }),
    );
  });

  it('are passed on unchanged from the only call, whatever they are', async () => {
    for (const reported of [
      new OpaqueText([Buffer.from('AAA\\/')]),
      [[1]],
      'AAAA',
      toOpaqueText(buildRows(1, 0, 9, 3), 7),
    ]) {
      const experts = asked();
      experts.take({ reported, engineTokens: 10, keptTokens: 10, from: 0 });
      expect(await experts.whole(10)).toBe(reported);
    }
  });

  it('are the experts of a later call alone if its rows differ in width', async () => {
    const experts = asked();
    experts.take({ reported: toOpaqueText(buildRows(1, 0, 4, 3), 9), engineTokens: 5, keptTokens: 5, from: 0 });
    const from = experts.nextRow('vllm');
    const reported = toOpaqueText(npy(buildRows(2, 0, 8, 5, 1), [8, 5, 1]), 9);
    experts.take({ reported, engineTokens: 9, keptTokens: 9, from });
    expect(await experts.whole(9)).toBe(reported);
    // Rows from the fourth on only, in no form of the first rows: their row numbers are not known.
    const other = asked();
    other.take({ reported: toOpaqueText(buildRows(1, 0, 4, 3), 9), engineTokens: 5, keptTokens: 5, from: 0 });
    other.take({ reported: toOpaqueText(buildRows(2, 4, 8, 7), 9), engineTokens: 9, keptTokens: 9, from: 4 });
    expect(await other.whole(9)).toBeUndefined();
  });

  it.each([
    ['another type', npy(Buffer.alloc(64), [8, 1, 1], '<f8')],
    ['a file that is cut', npy(Buffer.alloc(8), [8, 1, 1]).subarray(0, 9)],
    ['a file of half its rows', npy(Buffer.alloc(24), [8, 2, 3])],
    ['a header that is longer than its file', withHeaderLength(npy(Buffer.alloc(8), [8, 1, 1]), 65_526)],
    ['nothing', undefined],
  ])('are null for SkyRL: %s', async (_, file) => {
    const experts = asked();
    experts.take({ reported: file && toOpaqueText(file, 50), engineTokens: 9, keptTokens: 9, from: 0 });
    expect(await experts.packed(9)).toBeNull();
  });

  it('stay as they are for SkyRL if an engine has packed them', async () => {
    const experts = asked();
    const packed = { data: 'AAAA', shape: [1, 4, 2], dtype: 'uint8' };
    experts.take({ reported: packed, engineTokens: 2, keptTokens: 2, from: 0 });
    expect(await experts.packed(2)).toBe(packed);
  });

  it('are not kept when the response begins again', async () => {
    const experts = asked();
    experts.take({ reported: toOpaqueText(buildRows(1, 0, 4, 3), 9), engineTokens: 5, keptTokens: 5, from: 0 });
    experts.clear();
    expect([experts.nextRow('sglang'), await experts.whole(5)]).toEqual([0, undefined]);
  });

  it('leave the event loop free while they are joined, and are written without being copied', async () => {
    const experts = asked();
    const first = toOpaqueText(buildRows(1, 0, 40_000, 4), 65_536);
    experts.take({ reported: first, engineTokens: 40_001, keptTokens: 40_001, from: 0 });
    const second = toOpaqueText(buildRows(2, 40_000, 60_000, 4), 65_536);
    experts.take({ reported: second, engineTokens: 60_001, keptTokens: 60_001, from: 40_000 });
    let turns = 0;
    let next: NodeJS.Immediate;
    const count = (): void => {
      turns += 1;
      next = setImmediate(count);
    };
    count();
    const whole = (await experts.whole(60_001)) as OpaqueText;
    clearImmediate(next!);
    expect(decodeBytes(whole).length).toBe(60_000 * 16);
    expect(whole.parts[0]!.buffer).toBe(first.parts[0]!.buffer);
    expect(turns).toBeGreaterThanOrEqual(second.parts.length);
    const parts = withOpaqueTexts(() => JSON.stringify({ a: whole, b: [whole] })) as (string | Buffer)[];
    expect(parts.filter((part) => typeof part === 'string')).toEqual(['{"a":"', '","b":["', '"]}']);
    expect(parts[1]).toBe(whole.parts[0]);
  });
});
