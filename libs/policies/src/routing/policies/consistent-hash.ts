import { createHash } from 'node:crypto';
import { leastInflight } from './by-load';
import type { Policy } from './policy';

const POINTS_PER_WEIGHT = 64;
const MAX_POINTS = 1_024;
const RING = 2 ** 52;

export const consistentHash: Policy = {
  ...leastInflight,
  choose: (withRoom, fits, { sessionId, groupId, requestId }) =>
    clockwise(withRoom.filter(fits), sessionId ?? groupId ?? requestId)[0],
  branch: 'hash',
};

/** Returns the first 52 bits of the SHA-1 hash. */
function computeHash(text: string): number {
  return Number.parseInt(createHash('sha1').update(text).digest('hex').slice(0, 13), 16);
}

/**
 * Returns the number of points of a server, which are at `computeHash('<serverId>#<index>')` for the indexes from 0.
 */
function countPoints(weight: number): number {
  return Math.min(MAX_POINTS, Math.max(1, Math.floor(POINTS_PER_WEIGHT * weight + 0.5)));
}

/** Sorts servers by the distance of their nearest point, clockwise from the hash of the id. */
export function clockwise<Server extends { serverId: string; weight: number }>(
  servers: readonly Server[],
  id: string,
): Server[] {
  const from = computeHash(id);
  const distance = new Map(servers.map((server) => [server, nearest(server, from)]));
  return servers.toSorted((one, other) => distance.get(one)! - distance.get(other)!);
}

const pointsByServer = new Map<string, number[]>();

function nearest({ serverId, weight }: { serverId: string; weight: number }, from: number): number {
  const count = countPoints(weight);
  const name = `${serverId} ${count}`;
  let points = pointsByServer.get(name);
  if (!points) {
    points = Array.from({ length: count }, (_, index) => computeHash(`${serverId}#${index}`));
    if (pointsByServer.size > 10_000) pointsByServer.clear();
    pointsByServer.set(name, points);
  }
  return points.reduce((least, point) => Math.min(least, (point - from + RING) % RING), RING);
}
