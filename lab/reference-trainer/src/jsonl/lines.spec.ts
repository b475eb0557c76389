import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { splitLines } from './lines';

async function split(bytes: Buffer, cuts: number[] = []): Promise<string[]> {
  const chunks: Buffer[] = [];
  let start = 0;
  for (const cut of [...cuts.map((at) => at % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)) {
    chunks.push(bytes.subarray(start, cut));
    start = cut;
  }
  async function* stream() {
    yield* chunks;
  }
  const lines: string[] = [];
  for await (const line of splitLines(stream())) lines.push(line.toString('utf8'));
  return lines;
}

describe('lines of JSONL', () => {
  it('end at LF and CRLF and at nothing else', async () => {
    expect(await split(Buffer.from('a\u2028b\u2029c\u0085d\r\n\ne\rf'))).toEqual([
      'a\u2028b\u2029c\u0085d',
      '',
      'e\rf',
    ]);
    expect(await split(Buffer.from(''))).toEqual([]);
    expect(await split(Buffer.from('a\n'))).toEqual(['a']);
  });

  it('are the same wherever the stream is cut, also inside a character', async () => {
    const texts = fc.array(
      fc.string({ unit: 'binary' }).map((text) => text.replaceAll(/[\r\n]/g, '')),
      { minLength: 1 },
    );
    await fc.assert(
      fc.asyncProperty(texts, fc.array(fc.nat()), async (lines, cuts) => {
        const text = lines.map((line) => `${line}\n`).join('');
        expect(await split(Buffer.from(text), cuts)).toEqual(lines.map((line) => Buffer.from(line).toString('utf8')));
      }),
    );
  });
});
