import { applyDecorators } from '@nestjs/common';
import { IsObject, ValidateBy } from 'class-validator';

/** Labels of a server, e.g. `{"zone": "a"}`. */
export type Labels = Record<string, string>;

/** Labels of one server, or wanted by one acquire. */
export const MAX_LABELS = 16;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/;
const VALUE = /^[A-Za-z0-9._/-]{0,63}$/;

/** At most 16 labels; names and values of letters, digits and `. _ / -`, at most 63 characters each. */
export function IsLabels(): PropertyDecorator {
  return applyDecorators(
    IsObject(),
    ValidateBy({
      name: 'isLabels',
      constraints: [MAX_LABELS, NAME, VALUE],
      validator: {
        validate: isLabels,
        defaultMessage: () =>
          `$property must hold at most ${MAX_LABELS} labels; names and values of letters, digits and . _ / -`,
      },
    }),
  );
}

function isLabels(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const entries = Object.entries(value);
  return (
    entries.length <= MAX_LABELS &&
    entries.every(([name, label]) => NAME.test(name) && typeof label === 'string' && VALUE.test(label))
  );
}
