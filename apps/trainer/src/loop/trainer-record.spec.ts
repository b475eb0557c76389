import { expect, it } from 'vitest';
import { TrainerRecord } from './trainer-record';

const DOMAINS = ['math', 'math', undefined, 'code', 'math', 'code'];
const prompts = DOMAINS.map((domain, line) => ({ id: `p${line}`, line, prompt: { text: `prompt ${line}` }, domain }));

it('gives the next prompts of each domain, in the order of the data set', () => {
  const record = new TrainerRecord(prompts);
  expect(record.remainingByDomain).toEqual({ math: 3, code: 2, '': 1 });
  const next = record.next(4, { math: 1, code: 2, '': 1 });
  expect(next.map(({ id }) => id)).toEqual(['p0', 'p2', 'p3', 'p5']);
  record.submitted(next, 1);
  expect(record.remainingByDomain).toEqual({ math: 2 });
  expect(record.next(4, { code: 4 })).toEqual([]);
  expect(record.next(1).map(({ id }) => id)).toEqual(['p1']);
});
