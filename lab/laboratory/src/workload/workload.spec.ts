import { parseLengthTrace } from '@broomwagon/models';
import { describe, expect, it } from 'vitest';
import { tracedWorkload } from './workload';

describe('recorded lengths', () => {
  const trace = parseLengthTrace('promptKey,length\na,10\na,20\na,900\nb,5\n', 'csv', 'file');

  it('are the lengths of the file, with its prompts repeated, cut at the cap', () => {
    const workload = tracedWorkload('file', trace, 500, 8);
    expect([0, 1, 2].map((sample) => workload.getLength(0, sample, 0))).toEqual([10, 20, 500]);
    expect([workload.getLength(1, 0, 0), workload.getLength(2, 1, 0)]).toEqual([5, 20]);
  });

  it('change when a sample is started again, always to the same length for the same draw', () => {
    const workload = tracedWorkload('file', trace, 1_000, 8);
    const drawn = Array.from({ length: 60 }, (_, draw) => workload.getLength(0, 2, draw + 1));
    expect(new Set(drawn)).toEqual(new Set([10, 20, 900]));
    expect(Array.from({ length: 60 }, (_, draw) => workload.getLength(0, 2, draw + 1))).toEqual(drawn);
    expect(tracedWorkload('file', trace, 1_000, 8, 'same').getLength(0, 2, 1)).toBe(900);
  });

  it('are read in time that grows with the file, however many lines or lengths one prompt has', () => {
    const lines = parseLengthTrace('a,1\nb,2\na,3\n'.repeat(200_000), 'csv', 'file');
    expect([...lines].map(([prompt, lengths]) => [prompt, lengths.length])).toEqual([
      ['a', 400_000],
      ['b', 200_000],
    ]);
    expect(lines.get('a')!.slice(-4)).toEqual([1, 3, 1, 3]);
    // The list is longer than a call may have arguments.
    const long = `{"prompt":"a","lengths":[${'5,'.repeat(199_999)}6]}`;
    expect(parseLengthTrace(`${long}\n${long}\n`, 'jsonl', 'file').get('a')).toHaveLength(400_000);
  });

  it.each([
    ['a line without a length', 'a,10\nb,\n', 'csv', 'file:2'],
    ['a length of 0', 'a,10\nb,0\n', 'csv', 'file:2'],
    ['no JSON', '{"prompt":"a","lengths":[1]}\n{', 'jsonl', 'file:2'],
    ['no lengths at all', '', 'csv', 'holds no lengths'],
  ] as const)('name the line that is wrong: %s', (_, text, format, message) => {
    expect(() => parseLengthTrace(text, format, 'file')).toThrow(message);
  });
});
