import type { Schemas } from '@broomwagon/admin-client';

type Broken = NonNullable<Schemas['AutoChoice']['broken']>;

/** Texts about broken bounds of `auto` and its reaction: one text for measured bounds, one for predicted bounds. */
export function brokenBounds({ measured = [], predicted = [] }: Broken = {}): { by: keyof Broken; text: string }[] {
  const texts = {
    measured:
      `The ledger of the job breaks ${measured.join(', ')}. With each round, auto goes back by a step, down to wait, ` +
      'until no bound is broken. If one stays broken under wait, auto can do no more: raise the bound.',
    predicted:
      `The choice before this one was predicted to break ${predicted.join(', ')}. auto chose another for this round, ` +
      'which keeps all bounds: there is nothing to do.',
  };
  const known = { measured, predicted };
  return (['measured', 'predicted'] as const).flatMap((by) =>
    known[by].length === 0 ? [] : [{ by, text: texts[by] }],
  );
}
