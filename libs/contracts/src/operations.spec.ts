import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { OPERATIONS } from './operations';

it('explains every operation in docs/protocol/README.md', () => {
  const page = readFileSync('docs/protocol/README.md', 'utf8');
  expect(Object.keys(OPERATIONS).filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
