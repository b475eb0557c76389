import { InvalidArgumentError } from 'commander';

/** Reads a whole number of an option. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === '' || !Number.isInteger(value) || value < least || value > most) {
      throw new InvalidArgumentError(`Expected a whole number from ${least} to ${most}.`);
    }
    return value;
  };
}

/** Reads a number of an option. */
export function someNumber(least: number, most = Infinity): (text: string) => number {
  return (text) => numberList(least, most)(text.includes(',') ? 'no' : text)[0]!;
}

/** Reads numbers separated by commas, each within `least` and `most`. */
export function numberList(least: number, most = Infinity): (text: string) => number[] {
  return (text) => {
    const values = text.split(',').map(Number);
    if (text.trim() === '' || values.some((value) => !Number.isFinite(value) || value < least || value > most)) {
      throw new InvalidArgumentError(
        `Expected numbers of at least ${least}${most === Infinity ? '' : ` and at most ${most}`}, separated by commas.`,
      );
    }
    return values;
  };
}
