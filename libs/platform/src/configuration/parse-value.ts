import type { EnvKind } from './env.decorator';

/** Result of parsing: a value, or the reason why there is no value. */
export type Parsed = { value: unknown } | { reason: string };

const UNITS_MS: Record<string, number> = { '': 1, ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Parses the text of a variable, or checks a value of the configuration file, by the kind of the variable. */
export function parseValue(kind: EnvKind, given: unknown): Parsed {
  if (typeof given === 'string') return parseText(kind, given.trim());
  const fits =
    kind === 'list'
      ? Array.isArray(given) && given.every((item) => typeof item === 'string')
      : typeof given === (kind === 'duration' ? 'number' : kind);
  return fits ? { value: given } : { reason: `must be a ${kind}` };
}

function parseText(kind: EnvKind, text: string): Parsed {
  switch (kind) {
    case 'string':
      return { value: text };
    case 'number':
      return /^[+-]?\d+(\.\d+)?$/.test(text) ? { value: Number(text) } : { reason: `must be a number, is "${text}"` };
    case 'boolean':
      return text === 'true' || text === 'false'
        ? { value: text === 'true' }
        : { reason: `must be true or false, is "${text}"` };
    case 'list':
      return {
        value: text
          .split(',')
          .map((item) => item.trim())
          .filter((item) => item !== ''),
      };
    case 'duration': {
      const parts = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text);
      return parts === null
        ? { reason: `must be a duration as 250ms, 30s or 5m, is "${text}"` }
        : { value: Math.round(Number(parts[1]) * (UNITS_MS[parts[2] ?? ''] as number)) };
    }
  }
}
