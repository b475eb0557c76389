import * as fc from 'fast-check';
import { expect, inject, it } from 'vitest';
import type { TokenIncrement } from '@broomwagon/engines';
import { TokenBuffer } from './token-buffer';
import { toSegment } from '../engine/segment';

const RUNS = 1_000 * inject('runsFactor');
// Few letters, so that stop texts and their beginnings are frequent; one character of two tokens.
const TOKENS = fc.array(fc.constantFrom('a', 'b', 'ab', '<', '', '🙂'), { minLength: 1, maxLength: 20 });
const STOPS = fc.array(fc.constantFrom('ab', 'ba', 'aab', '<a>', '<', 'bb<'), { maxLength: 2 });

/** A token of each part of the text; the emoji has two, and its text arrives with the second one. */
function toTokens(texts: string[]): string[] {
  return texts.flatMap((text) => (text === '🙂' ? ['', '🙂'] : [text]));
}

/** An engine that generates these tokens from the first one on, and searches for stop texts in its own text only. */
function* generate(tokens: string[], first: number, stops: string[]): Generator<TokenIncrement> {
  let text = '';
  for (let id = first; id < tokens.length; id++) {
    text += tokens[id]!;
    const stop = findFirstStop(text, stops);
    const isLast = stop !== undefined || id === tokens.length - 1 || undefined;
    const surplus = stop === undefined ? 0 : text.length - stop.at - stop.text.length;
    const piece = surplus === 0 ? tokens[id]! : tokens[id]!.slice(0, -surplus);
    yield { tokenIds: [id], text: piece, tokenCount: 1, logprobs: [-id], isLast, matchedStop: stop?.text };
    if (isLast) return;
  }
}

function findFirstStop(text: string, stops: string[]): { at: number; text: string } | undefined {
  const found = stops.flatMap((stop) => (text.includes(stop) ? [{ at: text.indexOf(stop), text: stop }] : []));
  return found.toSorted((one, other) => one.at + one.text.length - (other.at + other.text.length))[0];
}

it('cuts the same text, wherever calls are cut: its segments have the text of all ids, without the stop text', () => {
  fc.assert(
    fc.property(TOKENS, STOPS, fc.array(fc.integer({ min: 1, max: 6 }), { maxLength: 6 }), (texts, stops, cuts) => {
      const tokens = toTokens(texts);
      const segments = [];
      let heldText: string | undefined;
      for (let first = 0, isEnded = false; !isEnded && first < tokens.length;) {
        const buffer = new TokenBuffer(stops, false);
        if (heldText !== undefined) buffer.restore({ text: heldText, tokenCount: 0 });
        let left = cuts.shift() ?? Infinity;
        for (const increment of generate(tokens, first, stops)) {
          isEnded = buffer.take(increment) || increment.isLast === true;
          if (isEnded || (left -= 1) === 0) break;
        }
        if (isEnded) buffer.complete();
        else buffer.cut();
        const { payload, tokenCount } = toSegment(buffer);
        ({ heldText } = payload);
        expect(payload.tokenIds ?? []).toEqual(Array.from({ length: tokenCount }, (_, index) => first + index));
        expect(payload.logprobs ?? []).toEqual((payload.tokenIds ?? []).map((id) => -id));
        segments.push(payload);
        first += tokenCount;
      }
      const ids = segments.flatMap((segment) => segment.tokenIds ?? []);
      const decoded = ids.map((id) => tokens[id]).join('');
      const text = segments.map((segment) => segment.text).join('');
      const stop = findFirstStop(decoded, stops);
      expect(text).toBe(stop === undefined ? decoded : decoded.slice(0, stop.at));
      if (stop === undefined) expect(ids).toHaveLength(tokens.length);
    }),
    { numRuns: RUNS },
  );
});

it('gives readers only text that stays, and all of it at the end', () => {
  fc.assert(
    fc.property(TOKENS, STOPS, (texts, stops) => {
      const tokens = toTokens(texts);
      const buffer = new TokenBuffer(stops, false);
      let read = '';
      for (const increment of generate(tokens, 0, stops)) {
        buffer.take(increment);
        read += buffer.textFrom(read.length);
        expect(buffer.textLength).toBe(read.length);
      }
      expect(read).toBe(buffer.text);
    }),
    { numRuns: RUNS },
  );
});

it('removes the beginning of a stop text from an engine that trims only text that it has not sent', () => {
  const buffer = new TokenBuffer(['</answer>'], false);
  for (const text of ['The', ' end ', '</an']) buffer.take({ text, tokenIds: [1], tokenCount: 1 });
  buffer.take({ text: '', tokenIds: [2], tokenCount: 1, isLast: true, matchedStop: '</answer>' });
  expect([buffer.text, buffer.count]).toEqual(['The end ', 4]);
});

it('drops the tokens of a character that an abort has cut, which engines write as a replacement character', () => {
  const buffer = new TokenBuffer([], false);
  buffer.take({ text: 'a', tokenIds: [1], tokenCount: 1 });
  buffer.take({ text: '\uFFFD', tokenIds: [2], tokenCount: 1 });
  buffer.cut();
  expect([buffer.text, buffer.allIds]).toEqual(['a', [1]]);
});

it('drops the tokens of a character that an abort has cut, of which SGLang sends the space before the character', () => {
  const buffer = new TokenBuffer([], false);
  buffer.take({ text: 'a', tokenIds: [1], tokenCount: 1 });
  buffer.take({ text: ' ', tokenIds: [2], tokenCount: 1 });
  buffer.cut();
  expect([buffer.text, buffer.allIds]).toEqual(['a', [1]]);

  buffer.take({ text: ' ', tokenIds: [2], tokenCount: 1 });
  buffer.take({ text: '🙂', tokenIds: [3], tokenCount: 1 });
  // Withheld text of these ids.
  buffer.take({ text: ' ', tokenIds: [], tokenCount: 0 });
  buffer.cut();
  expect([buffer.text, buffer.allIds]).toEqual(['a 🙂 ', [1, 2, 3]]);
});

it('holds no text back if the response keeps its stop text', () => {
  const buffer = new TokenBuffer(['ab'], true);
  buffer.take({ text: 'xa', tokenIds: [1], tokenCount: 1 });
  expect(buffer.textFrom(0)).toBe('xa');
  buffer.take({ text: 'b', tokenIds: [2], tokenCount: 1, isLast: true, matchedStop: 'ab' });
  expect(buffer.text).toBe('xab');
});
