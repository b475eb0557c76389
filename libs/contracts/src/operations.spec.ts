import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { OPERATIONS } from './operations';

it('explains every operation in docs/protocol/README.md', () => {
  const page = readFileSync('docs/protocol/README.md', 'utf8');
  const unexplained = Object.keys(OPERATIONS).filter((name) => !page.includes(`\`${name}\``));
  expect(unexplained, 'explain these operations in the page').toEqual([]);
});
