import { Injectable } from '@nestjs/common';
import { InEachPool } from '@broomwagon/platform';
import { buildOutlook, MIN_CONTEXT_BIN, type SessionCounts } from '@broomwagon/policies';
import { SessionStore } from '@broomwagon/state';

const OUTLOOK_INTERVAL_MS = 5_000;

/** Computes the expected growth of the sessions of a pool, and the expected times between two turns. */
@Injectable()
export class SessionOutlookService {
  constructor(private readonly sessions: SessionStore) {}

  /** Every replica computes the same outlook from the counts in Redis. */
  @InEachPool('session-outlook', OUTLOOK_INTERVAL_MS)
  async review(pool: string): Promise<void> {
    const learned = await this.sessions.learn(pool, {});
    if (!learned.isOn) return;
    const { growth, away, staleMs } = buildOutlook(toCounts(learned.counts));
    const outlook: Record<string, number> = { staleMs };
    for (const [index, tokens] of growth.entries()) outlook[`growth${index + MIN_CONTEXT_BIN}`] = tokens;
    for (const [bin, share] of away.entries()) outlook[`away${bin}`] = share;
    await this.sessions.learn(pool, { outlook });
  }
}

/** @param fields name of a count and bin -> how many */
function toCounts(fields: Readonly<Record<string, number>>): SessionCounts {
  const counts = {
    reached: {} as Record<number, number>,
    ended: {} as Record<number, number>,
    gaps: {} as Record<number, number>,
  };
  for (const [field, count] of Object.entries(fields)) {
    const [, name, bin] = /^(reached|ended|gap)(\d+)$/.exec(field) ?? [];
    if (name !== undefined) counts[name === 'gap' ? 'gaps' : (name as 'reached' | 'ended')][Number(bin)] = count;
  }
  return counts;
}
