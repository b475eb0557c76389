import { createHash } from 'node:crypto';
import { leastInflight } from './by-load';
import type { Policy } from './policy';

export const random: Policy = {
  ...leastInflight,
  choose: (withRoom, fits, { acquireId }) => draw(withRoom.filter(fits), acquireId, 1)[0],
  branch: 'hash',
};

export const powerOfTwo: Policy = {
  ...leastInflight,
  choose(withRoom, fits, { acquireId }) {
    const [one, other] = draw(withRoom.filter(fits), acquireId, 2);
    return one && other && leastInflight.load(other) < leastInflight.load(one) ? other : one;
  },
  branch: 'hash',
};

/** Draws one or two different servers by a hash of the acquireId; fewer if there are not enough. */
function draw<Server>(servers: readonly Server[], acquireId: string, draws: 1 | 2): Server[] {
  const left = [...servers];
  return Array.from({ length: Math.min(draws, left.length) }, (_, index) => {
    const hash = createHash('sha1')
      .update(`${acquireId}#${index + 1}`)
      .digest('hex');
    return left.splice(Number.parseInt(hash.slice(0, 8), 16) % left.length, 1)[0]!;
  });
}
