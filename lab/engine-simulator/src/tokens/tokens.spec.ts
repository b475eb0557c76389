import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lengthSource } from './length-source';
import { SampleIdentities, type WirePrompt } from './sample-identity';
import { splitText, splitTokenIds, TokenScript } from './token-script';

const text = (value: string): WirePrompt => ({ kind: 'text', text: value });

describe('tokens of simulated responses', () => {
  it('can be split off any resume prompt, as text and as ids, wherever they were cut', () => {
    const script = fc.tuple(fc.integer(), fc.nat(131_071)).map(([hash, key]) => new TokenScript(hash, key));
    fc.assert(
      fc.property(script, fc.nat(300), fc.nat(300), fc.string(), (one, from, more, prompt) => {
        fc.pre(!/ t\d+$/.test(prompt));
        const to = from + more;
        const numbers = Array.from({ length: to }, (_, index) => one.numberAt(index));
        expect(splitText(prompt + one.text(0, from) + one.text(from, to))).toEqual({ given: prompt, made: numbers });
        const ids = JSON.parse(`[${one.idList(0, to)}]`) as number[];
        expect(splitTokenIds([7, 151_000, ...ids])).toEqual({ given: [7, 151_000], made: numbers });
        expect(one.startsWith(numbers)).toBe(true);
      }),
    );
  });

  it('differ between samples with different seeds, and between samples without seeds', () => {
    const identities = new SampleIdentities();
    const keys = [1, 2, undefined, undefined].map((seed) => identities.identify(text('p'), seed).script.sampleKey);
    expect(new Set(keys).size).toBe(4);
    expect(identities.identify(text('p'), 1).script.sampleKey).toBe(keys[0]);
  });

  it('identify a resumed request by its prompt alone; a prompt with wrong tokens is counted', () => {
    const identities = new SampleIdentities();
    const fresh = identities.identify(text('p'), undefined);
    const resumed = identities.identify(text(`p${fresh.script.text(0, 500)}`), undefined);
    expect(resumed).toMatchObject({ promptKey: fresh.promptKey, madeTokens: 500 });
    expect(resumed.script.sampleKey).toBe(fresh.script.sampleKey);
    expect(identities.resumeMismatches).toBe(0);
    expect(identities.identify(text(`p${fresh.script.text(0, 5)} t1`), undefined).madeTokens).toBe(0);
    expect(identities.resumeMismatches).toBe(1);
  });
});

describe('lengths from a file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'engine-simulator-'));
  const write = (name: string, content: string): string => {
    const path = join(folder, name);
    writeFileSync(path, content);
    return path;
  };
  const length = (path: string, prompt: string, seed: number): number =>
    lengthSource(path, 1).getLength(new SampleIdentities().identify(text(prompt), seed));

  it('are taken by prompt and sample', () => {
    const path = write('a.jsonl', '{"prompt":"p","lengths":[10,20]}\n{"prompt":"*","lengths":[5]}\n');
    expect([0, 1, 2].map((seed) => length(path, 'p', seed))).toEqual([10, 20, 10]);
    expect(length(path, 'other', 0)).toBe(5);
    expect(length(write('a.csv', 'promptKey,length\np,7\np,8\n'), 'p', 1)).toBe(8);
  });

  it.each([
    ['bad.jsonl', '{"prompt":"p","lengths":[1]}\n{"prompt":"p"}\n', /bad\.jsonl:2/],
    ['zero.csv', 'p,1\np,0\n', /zero\.csv:2/],
    ['empty.jsonl', '\n', /holds no lengths/],
  ])('are refused with the faulty line: %s', (name, content, message) => {
    expect(() => lengthSource(write(name, content), 1)).toThrowError(message);
  });

  it('are refused if the file is an unknown preset', () => {
    expect(() => lengthSource('math-long', 1)).toThrowError(/no preset/);
  });
});
