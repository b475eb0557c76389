import * as fc from 'fast-check';
import { expect, inject, it } from 'vitest';
import { findEventEnds } from './event-ends';

it('sends the first token at once, then each interval, and at the end what is left', () => {
  const steps = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(steps, fc.integer({ min: 2, max: 20 }), (added, interval) => {
      let [sent, made] = [0, 0];
      const events: number[] = [];
      for (const [index, tokens] of added.entries()) {
        made += tokens;
        for (const end of findEventEnds(sent, made, interval, index === added.length - 1)) {
          events.push(end - sent);
          sent = end;
        }
        expect(made - sent).toBeLessThan(interval);
      }
      const rest = made - 1;
      const expected = [1, ...Array<number>(Math.floor(rest / interval)).fill(interval), rest % interval];
      expect(events).toEqual(expected.filter((tokens) => tokens > 0));
    }),
    { seed: inject('seed') },
  );
});

it('sends all tokens that there are without an interval', () => {
  expect(findEventEnds(3, 20)).toEqual([20]);
  expect(findEventEnds(0, 20, 1)).toEqual([20]);
});
