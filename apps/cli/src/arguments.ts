import { type Command, InvalidArgumentError, Option } from 'commander';
import { UsageError } from './failures';

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses a duration such as `90s`. @returns milliseconds */
export function duration(text: string): number {
  const [, count, unit] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) ?? [];
  if (unit === undefined) throw new InvalidArgumentError('It must be a duration such as 500ms, 90s, 5m or 2h.');
  return Number(count) * UNITS[unit]!;
}

/** Makes an option with a duration. The help shows the default as text, such as `90s`. */
export function durationOption(flags: string, about: string, preset: string): Option {
  return new Option(flags, about).argParser(duration).default(duration(preset), preset);
}

export function count(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.');
  return Number(text);
}

/** Parses a whole number from 0, such as a version. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,14}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 0.');
  return Number(text);
}

export function number(text: string): number {
  if (text.trim() === '' || !Number.isFinite(Number(text))) throw new InvalidArgumentError('It must be a number.');
  return Number(text);
}

/** Adds `NAME=VALUE` to the settings before. VALUE is JSON, otherwise a text. */
export function assignment(text: string, before: Record<string, unknown> = {}): Record<string, unknown> {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError('It must be NAME=VALUE.');
  return { ...before, [name]: parsed(value) };
}

/** Adds `NAME=TEXT` to the labels before. */
export function label(text: string, before: Record<string, string> = {}): Record<string, string> {
  const [name, value] = Object.entries(assignment(text))[0]!;
  return { ...before, [name]: typeof value === 'string' ? value : text.slice(name.length + 1) };
}

/** Adds a text to the texts before. */
export function repeated(text: string, before: string[] = []): string[] {
  return [...before, text];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * Refuses empty texts: an empty id, often of a variable without a value, must not mean all.
 * @throws UsageError that names the argument, option or variable
 */
export function checkTexts(command: Command): void {
  // The word that a shell completes may be empty.
  if (command.name() === 'complete') return;
  const isEmpty = (value: unknown): boolean => value === '' || (Array.isArray(value) && value.includes(''));
  command.registeredArguments.forEach((argument, at) => {
    if (isEmpty(command.processedArgs[at])) throw new UsageError(`${argument.name()} is empty`);
  });
  const values = command.optsWithGlobals<Record<string, unknown>>();
  for (let owner: Command | null = command; owner !== null; owner = owner.parent) {
    for (const option of owner.options) {
      const name = option.attributeName();
      if (!isEmpty(values[name]) || name === 'token') continue;
      const isOfEnvironment = owner.getOptionValueSource(name) === 'env';
      throw new UsageError(isOfEnvironment ? `${option.envVar} is empty: unset it` : `${option.long} is empty`);
    }
  }
}
