import { Injectable } from '@nestjs/common';
import {
  LIMITS,
  type GroupResult,
  type PoolName,
  type RoundResultsReply,
  type RoundResultsRequest,
} from '@broomwagon/contracts';
import { RoundStore } from '@broomwagon/state';
import { LedgerService } from '../ledger/ledger.service';

/** A reply stays well below the limit of a message; the next sample may be as large as all before it. */
const REPLY_BYTES = LIMITS.bodyBytes / 2;

/** Puts pages of results together from pages of scripts. */
@Injectable()
export class ResultsService {
  constructor(
    private readonly rounds: RoundStore,
    private readonly ledgers: LedgerService,
  ) {}

  /** A page may end in the middle of a group. @throws BroomwagonError FENCED, ROUND_NOT_FOUND, ROUND_CLOSED */
  async results(pool: PoolName, body: RoundResultsRequest): Promise<RoundResultsReply> {
    const { job, roundId, trainerEpoch, limit = LIMITS.groupsPerResultsPage } = body;
    const groups: GroupResult[] = [];
    let { cursor = 0, sampleCursor = 0 } = body;
    let maxBytes = REPLY_BYTES;
    for (;;) {
      const wanted = limit - groups.length + (groups.at(-1)?.more === true ? 1 : 0);
      const args = { job, roundId, trainerEpoch, cursor, sampleCursor, limit: wanted, maxBytes };
      const page = await this.rounds.results(pool, args);
      append(groups, page.groups);
      ({ cursor, sampleCursor } = page);
      maxBytes -= Buffer.byteLength(JSON.stringify(page.groups));
      const { state, complete } = page;
      const isFull = maxBytes <= 0 || (groups.length >= limit && sampleCursor === 0);
      if (complete) {
        const ledger = await this.ledgers.ofRound(pool, { job, roundId });
        return { state, groups, cursor, sampleCursor, complete, ledger };
      }
      if (page.groups.length === 0 || isFull) return { state, groups, cursor, sampleCursor, complete };
    }
  }
}

/** The first group of a page may be the rest of the last one before it. */
function append(groups: GroupResult[], page: readonly GroupResult[]): void {
  for (const group of page) {
    const last = groups.at(-1);
    if (last?.more !== true) {
      groups.push(group);
      continue;
    }
    last.samples.push(...group.samples);
    if (group.more !== true) delete last.more;
  }
}
