import { isBroomwagonError } from '@broomwagon/contracts';
import * as fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import { EventStreamParser } from './event-stream';

const BOUND = 1_048_576;

function parse(bytes: Uint8Array, cuts: number[]): string[] {
  const parser = new EventStreamParser(BOUND);
  const edges = [...cuts.map((cut) => cut % (bytes.length + 1)), 0, bytes.length].toSorted((a, b) => a - b);
  return edges.slice(1).flatMap((edge, index) => parser.push(bytes.subarray(edges[index], edge)));
}

// Text without line breaks, rich in characters of two to four bytes.
const line = fc
  .array(fc.oneof(fc.constantFrom('é', '漢', '🙂', ':', ' ', '{"a":1}'), fc.string({ unit: 'grapheme' })))
  .map((parts) => parts.join('').replaceAll(/[\r\n\uFEFF]/g, ''));
const noise = fc.constantFrom(': keep-alive', ':', 'event: message', 'id: 7', 'retry: 10', 'unknown');

describe('event stream parser', () => {
  it('gives the same events for every split of the bytes, every line ending, and comments anywhere', () => {
    const event = fc.record({ data: fc.array(line, { minLength: 1, maxLength: 3 }), noise: fc.array(noise) });
    fc.assert(
      fc.property(
        fc.array(event),
        fc.constantFrom('\n', '\r\n', '\r'),
        fc.array(fc.nat(), { maxLength: 60 }),
        (events, ending, cuts) => {
          const text = events
            .map(({ data, noise: extra }) => [...extra, ...data.map((one) => `data: ${one}`), '', ''].join(ending))
            .join('');
          expect(parse(new TextEncoder().encode(text), cuts)).toEqual(events.map(({ data }) => data.join('\n')));
        },
      ),
      { numRuns: 300 * inject('runsFactor') },
    );
  });

  it('gives the same events for chunks of one event, of several, and of parts of one', () => {
    const chunk = fc.constantFrom(
      'data: a\n\n',
      'data: é\n\n',
      'data:b\n\n',
      'data: c\n',
      '\n',
      'data: d\r\n\r\n',
      'data: e\r\r',
      '\r',
      'data: f\rd\n\n',
      'data: g\n\nd',
      'ata: h\n\n',
      ': i\n\n',
      'data: j\ndata: k\n\n',
      'data: l\n\ndata: m\n\n',
      'd\n\n',
      'data: \n\n',
    );
    fc.assert(
      fc.property(fc.array(chunk), (chunks) => {
        const parser = new EventStreamParser(BOUND);
        // A line before the others: they are read with it, and not by themselves.
        const together = new EventStreamParser(BOUND).push(Buffer.from(`:\n${chunks.join('')}`));
        expect(chunks.flatMap((one) => parser.push(Buffer.from(one)))).toEqual(together);
      }),
      { numRuns: 300 * inject('runsFactor') },
    );
  });

  it('survives one byte at a time', () => {
    const bytes = new TextEncoder().encode(': hi\r\ndata: {"t":"漢🙂"}\r\n\r\ndata:[DONE]\n\n');
    expect(parse(bytes, [...bytes.keys()])).toEqual(['{"t":"漢🙂"}', '[DONE]']);
  });

  it('refuses a line over the bound, whole or in pieces', () => {
    const parser = new EventStreamParser(100);
    expect(() => parser.push(Buffer.from(`data: ${'x'.repeat(200)}\n`))).toThrowError(/more than 100 bytes/);
    const pieces = new EventStreamParser(100);
    let failure: unknown;
    try {
      for (let count = 0; count < 200; count++) pieces.push(Buffer.from('x'));
    } catch (error) {
      failure = error;
    }
    expect(isBroomwagonError(failure, 'ENGINE_PROTOCOL')).toBe(true);
  });
});
