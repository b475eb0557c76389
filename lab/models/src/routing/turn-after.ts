const TURN = 4_096;

/** A lease moves the server's turn on by 4,096 / weight. */
export function turnAfter(turn: number, weight: number): number {
  return turn + Math.max(1, Math.floor(TURN / weight + 0.5));
}
