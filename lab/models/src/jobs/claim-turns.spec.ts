import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ClaimTurns, returnToLine, takeTurns, type TurnJob } from './claim-turns';

const PAGE = 16;

function line(quotas: { weight: number; maxInFlight?: number }[], pending = 1_000_000): ClaimTurns {
  const jobs = quotas.map((quota, index) => ({
    job: `j${index}`,
    quota,
    pending,
    inFlight: 0,
    service: 0,
    place: 0,
  }));
  return { present: 0, jobs };
}
const weights = fc.array(fc.record({ weight: fc.integer({ min: 1, max: 20 }) }), { minLength: 2, maxLength: 6 });
const claims = fc.array(fc.integer({ min: 1, max: PAGE }), { minLength: 1, maxLength: 200 });

describe('the turns of jobs', () => {
  it('hold the shares of the weights within one page', () => {
    fc.assert(
      fc.property(weights, claims, (quotas, sizes) => {
        let turns = line(quotas);
        const given = new Map(turns.jobs.map(({ job }) => [job, 0]));
        for (const size of sizes) {
          const answer = takeTurns(turns, size);
          ({ turns } = answer);
          for (const { job, requests } of answer.given) given.set(job, given.get(job)! + requests);
          const shares = turns.jobs.map(({ job, quota: { weight } }) => ({ weight, pages: given.get(job)! / weight }));
          const least = Math.min(...shares.map(({ pages }) => pages));
          const ahead = shares.map(({ weight, pages }) => pages - least - PAGE / weight);
          expect(Math.max(...ahead)).toBeLessThanOrEqual(1e-3);
        }
      }),
    );
  });

  it('starve no job, whichever jobs come and go', () => {
    fc.assert(
      fc.property(weights, fc.infiniteStream(fc.nat()), (quotas, stream) => {
        const decide = (choices: number) => (stream.next().value as number) % choices;
        let turns = line(quotas);
        const waited = new Map(turns.jobs.map(({ job }) => [job, 0]));
        const sum = quotas.reduce((total, { weight }) => total + weight, 0);
        let longest = 0;
        for (let claim = 0; claim < 300; claim++) {
          // One of the other jobs has no requests for a while, then many.
          const changed = turns.jobs[1 + decide(quotas.length - 1)]!;
          turns = returnToLine(turns, { ...changed, pending: decide(3) === 0 ? decide(40) : changed.pending });
          const answer = takeTurns(turns, PAGE);
          ({ turns } = answer);
          waited.set('j0', answer.given.some(({ job }) => job === 'j0') ? 0 : waited.get('j0')! + 1);
          longest = Math.max(longest, waited.get('j0')!);
        }
        // All other jobs have at most their turns of one page for each page that is due to j0 by weight.
        expect(longest).toBeLessThanOrEqual(quotas.length + Math.ceil(sum / quotas[0]!.weight));
      }),
    );
  });

  it('keep every cap, and a job at its cap takes nothing from the others', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 30 }),
        claims,
        fc.infiniteStream(fc.nat()),
        (maxInFlight, sizes, stream) => {
          const decide = (choices: number) => (stream.next().value as number) % choices;
          let turns = line([{ weight: 20, maxInFlight }, { weight: 1 }, { weight: 3, maxInFlight: 5 }]);
          for (const size of sizes) {
            const answer = takeTurns(turns, size);
            ({ turns } = answer);
            expect(answer.given.reduce((total, { requests }) => total + requests, 0)).toBe(size);
            for (const { quota, inFlight } of turns.jobs) {
              expect(inFlight).toBeLessThanOrEqual(quota.maxInFlight ?? Infinity);
            }
            const ended = turns.jobs[decide(3)] as TurnJob;
            const inFlight = Math.max(0, ended.inFlight - decide(4));
            turns = returnToLine(turns, { ...ended, inFlight });
          }
        },
      ),
    );
  });

  it('give no credit for a time without requests', () => {
    let turns = line([{ weight: 1 }, { weight: 1 }]);
    const idle = turns.jobs[1]!;
    turns = { ...turns, jobs: [turns.jobs[0]!, { ...idle, pending: 0, place: undefined }] };
    for (let claim = 0; claim < 100; claim++) ({ turns } = takeTurns(turns, PAGE));
    turns = returnToLine(turns, { ...turns.jobs[1]!, pending: 10_000 });
    const given = new Map<string, number>();
    for (let claim = 0; claim < 20; claim++) {
      const answer = takeTurns(turns, PAGE);
      ({ turns } = answer);
      for (const { job, requests } of answer.given) given.set(job, (given.get(job) ?? 0) + requests);
    }
    expect(Math.abs(given.get('j0')! - given.get('j1')!)).toBeLessThanOrEqual(2 * PAGE);
  });
});
