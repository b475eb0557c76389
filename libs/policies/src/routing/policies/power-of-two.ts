import { leastInflight } from './least-inflight';
import type { Policy } from './policy';
import { draw } from './random';

export const powerOfTwo: Policy = {
  ...leastInflight,
  choose(withRoom, fits, { acquireId }) {
    const [one, other] = draw(withRoom.filter(fits), acquireId, 2);
    return one && other && leastInflight.load(other) < leastInflight.load(one) ? other : one;
  },
  branch: 'hash',
};
