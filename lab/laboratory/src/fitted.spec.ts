import { expect, it } from 'vitest';
import { FITTED } from './fitted';
import { HEADLINES } from './headlines/headlines';

it('fits parameters to runs without a policy only', () => {
  const byId = new Map(HEADLINES.map((headline) => [headline.id, headline]));
  for (const id of FITTED.flatMap(({ headlines }) => headlines)) {
    expect(byId.get(id), id).toMatchObject({ isBaseline: true });
  }
});
