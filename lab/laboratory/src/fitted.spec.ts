import { expect, it } from 'vitest';
import { FITTED } from './fitted';
import { HEADLINES } from './headlines/headlines';

it('fits parameters only to baselines, and never to runs with a policy', () => {
  const byId = new Map(HEADLINES.map((headline) => [headline.id, headline]));
  for (const id of FITTED.flatMap(({ headlines }) => headlines)) {
    expect(byId.get(id), id).toMatchObject({ isBaseline: true });
  }
});
