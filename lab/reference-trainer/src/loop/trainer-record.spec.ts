import { expect, it } from 'vitest';
import { TrainerRecord } from './trainer-record';

const DOMAINS = ['math', 'math', undefined, 'code', 'math', 'code'];
const prompts = DOMAINS.map((domain, line) => ({ id: `p${line}`, line, prompt: { text: `prompt ${line}` }, domain }));

it('gives the next prompts of each domain, in the order of the data set', () => {
  const record = new TrainerRecord(prompts);
  expect(record.remainingByDomain).toEqual({ math: 3, code: 2, '': 1 });
  const next = record.next(4, new Map(Object.entries({ math: 1, code: 2, '': 1 })));
  expect(next.map(({ id }) => id)).toEqual(['p0', 'p2', 'p3', 'p5']);
  record.submitted(next, 1);
  expect(record.remainingByDomain).toEqual({ math: 2 });
  expect(record.next(4, new Map([['code', 4]]))).toEqual([]);
  expect(record.next(1).map(({ id }) => id)).toEqual(['p1']);
});

it('counts domains that have the names of properties of objects', () => {
  const names = ['constructor', '__proto__', 'toString'];
  const record = new TrainerRecord(prompts.slice(0, 3).map((prompt, line) => ({ ...prompt, domain: names[line] })));
  expect(Object.entries(record.remainingByDomain)).toEqual(names.map((name) => [name, 1]));
  expect(record.next(3, new Map([['toString', 1]])).map(({ id }) => id)).toEqual(['p2']);
  expect(record.next(3, new Map())).toEqual([]);
});
