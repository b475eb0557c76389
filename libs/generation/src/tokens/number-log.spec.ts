import fc from 'fast-check';
import { expect, it } from 'vitest';
import { NumberLog } from './number-log';

it('returns every number exactly as it was added, from any index on, and null as NaN', () => {
  const number = fc.oneof(
    fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
    fc.float({ noNaN: true }),
    fc.double({ noNaN: true }),
    fc.constantFrom(null, -0, 2 ** 31, Infinity),
  );
  // Most lists are of one kind, so that parts of 4 and of 8 bytes follow each other in some.
  const numbers = fc.oneof(
    fc.array(fc.integer({ min: 0, max: 200_000 }), { maxLength: 2_000, size: 'max' }),
    fc.array(number, { maxLength: 2_000, size: 'max' }),
  );
  fc.assert(
    fc.property(numbers, fc.constantFrom(Int32Array, Float32Array), fc.nat(2_100), (all, Compact, start) => {
      const log = new NumberLog(Compact);
      for (const value of all) log.push(value);
      expect(log.length).toBe(all.length);
      const added = all.map((value) => value ?? Number.NaN);
      expect(log.from(start)).toEqual(added.slice(start));
      log.clear();
      expect([log.length, log.from(0)]).toEqual([0, []]);
      log.push(7);
      expect(log.from(0)).toEqual([7]);
    }),
  );
});
