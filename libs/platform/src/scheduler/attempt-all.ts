/** Runs all works one after the other, also when one fails. @throws the first error, at the end */
export async function attemptAll(works: readonly (() => Promise<unknown>)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const work of works) await work().catch((error: unknown) => errors.push(error));
  if (errors.length > 0) throw errors[0];
}
