/** The known name most like a mistyped one, or undefined when none is near. */
export function closestName(mistyped: string, known: readonly string[]): string | undefined {
  const withoutPrefix = mistyped.replace(/^BROOMWAGON_/, '');
  let best: { name: string; distance: number } | undefined;
  for (const name of known) {
    const distance = Math.min(editDistance(mistyped, name), editDistance(withoutPrefix, name));
    if (best === undefined || distance < best.distance) {
      best = { name, distance };
    }
  }
  return best !== undefined && best.distance <= Math.max(2, withoutPrefix.length / 3) ? best.name : undefined;
}

function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const change = (previous[column - 1] as number) + (left[row - 1] === right[column - 1] ? 0 : 1);
      current.push(Math.min(change, (previous[column] as number) + 1, (current[column - 1] as number) + 1));
    }
    previous = current;
  }
  return previous[right.length] as number;
}
