import { isDeepStrictEqual } from 'node:util';
import type { JobId } from '@broomwagon/contracts';
import type { CountLook, Counts } from './job-recounts';
import { toList, type PoolLook } from './pool-look';

/** States whose requests are kept one by one; the others may be folded into the counts. */
const KEPT_STATES = ['pending', 'claimed', 'running', 'cutting', 'unfinished', 'finished'] as const;
const FOLDED_STATES = ['trained', 'failed', 'dropped'] as const;

/**
 * Checks the counts of a job by state once: `submitted` is the sum of all states, and each state counts the requests
 * that are in it.
 * @returns number of requests found
 */
export function compareCounts(look: PoolLook, job: JobId, { counts, found, isProven, mended }: CountLook): number {
  const note = (check: string, detail: string) =>
    look.note([{ check, where: job, detail, steps: mended ? [] : undefined }], mended);
  const balance = findImbalance(counts);
  if (balance) note('counts-balance', balance);
  for (const state of isProven ? KEPT_STATES : []) {
    const [known, there] = [counts[state] ?? 0, found[state] ?? 0];
    if (known !== there) note('counts-recount', `${state}: ${known} in the counts, ${there} found`);
  }
  return Object.values(found).reduce((sum, count) => sum + count, 0);
}

/** Counts the requests of a job. The sums are not proven when requests change their state meanwhile. */
export async function countRequests(look: PoolLook, job: JobId): Promise<CountLook> {
  const before = await readCounts(look, job);
  const found: Counts = {};
  const seen = new Set<string>();
  for await (const [id, [state]] of look.hashes(`request:${job}/`, 'state')) {
    if (state != null && !seen.has(id)) found[state] = (found[state] ?? 0) + 1;
    seen.add(id);
  }
  const isProven = isDeepStrictEqual(before, await readCounts(look, job));
  return { counts: before.counts, found, isProven, mended: false };
}

/** While both the counts and the sequence stay the same, a scan counts each request exactly once. */
async function readCounts(look: PoolLook, job: JobId): Promise<{ counts: Counts; sequence: unknown }> {
  const fields = toList<string>(await look.read('HGETALL', ['counts', job]));
  const counts: Counts = {};
  for (let at = 0; at < fields.length; at += 2) counts[fields[at]!] = Number(fields[at + 1]);
  return { counts, sequence: await look.read('HGET', 'meta', 'pendingSequence') };
}

/** Description of counts that do not add up, or undefined when they do. */
function findImbalance(counts: Counts): string | undefined {
  const states = [...KEPT_STATES, ...FOLDED_STATES].map((state) => counts[state] ?? 0);
  const sum = states.reduce((total, count) => total + count, 0);
  const submitted = counts.submitted ?? 0;
  if (sum === submitted && states.every((count) => count >= 0)) return undefined;
  const sorted = Object.entries(counts).sort(([one], [other]) => (one < other ? -1 : 1));
  return `submitted ${submitted}, sum of states ${sum}: ${JSON.stringify(sorted)}`;
}
