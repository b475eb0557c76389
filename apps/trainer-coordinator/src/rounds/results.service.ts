import { Injectable } from '@nestjs/common';
import {
  LIMITS,
  type GroupResult,
  type PoolName,
  type RoundResultsReply,
  type RoundResultsRequest,
} from '@broomwagon/contracts';
import { PARKED } from '@broomwagon/messaging';
import { RoundStore } from '@broomwagon/state';
import { LedgerService } from '../ledger/ledger.service';
import { WaitingReaders } from './waiting-readers';

/**
 * Bytes after which a page ends: half of a message, because the last sample may be as large as all samples before.
 */
const REPLY_BYTES = LIMITS.bodyBytes / 2;

/** Makes pages of results. Each page joins the answers of several transitions. */
@Injectable()
export class ResultsService {
  constructor(
    private readonly rounds: RoundStore,
    private readonly ledgers: LedgerService,
    private readonly readers: WaitingReaders,
  ) {}

  /**
   * Returns a page at once or, with `waitMs`, when there is a result to read. A page may end in the middle of a group.
   * @param replyTo inbox for the answer of a reader that waits; without it the call does not wait
   * @throws BroomwagonError GENERATION_CHANGED, FENCED, ROUND_NOT_FOUND, ROUND_CLOSED, ROUND_CANCELLED
   */
  async results(
    pool: PoolName,
    body: RoundResultsRequest,
    replyTo?: string,
  ): Promise<RoundResultsReply | typeof PARKED> {
    const page = await this.page(pool, body);
    const { waitMs = 0 } = body;
    if (!isEmpty(page) || waitMs === 0 || replyTo === undefined) return page;
    const look = async () => {
      const later = await this.page(pool, body);
      return isEmpty(later) ? undefined : later;
    };
    return this.readers.park({ pool, ...body }, { replyTo, waitMs, empty: page, look }) ? PARKED : page;
  }

  private async page(pool: PoolName, body: RoundResultsRequest): Promise<RoundResultsReply> {
    const { job, roundId, trainerEpoch, stamp, limit = LIMITS.groupsPerResultsPage } = body;
    const groups: GroupResult[] = [];
    let { cursor } = body;
    let maxBytes = REPLY_BYTES;
    for (;;) {
      const wanted = limit - groups.length + (groups.at(-1)?.more === true ? 1 : 0);
      const args = { job, roundId, trainerEpoch, stamp, cursor, limit: wanted, maxBytes };
      const page = await this.rounds.results(pool, args);
      append(groups, page.groups);
      ({ cursor } = page);
      maxBytes -= Buffer.byteLength(JSON.stringify(page.groups));
      const { groups: _, ...reply } = page;
      const isFull = maxBytes <= 0 || (groups.length >= limit && groups.at(-1)?.more !== true);
      if (page.complete || page.groups.length === 0 || isFull) {
        return this.withLedger(pool, args, { ...reply, groups });
      }
    }
  }

  /** Adds the acceptance of each sample, and the ledger of a complete round. */
  private async withLedger(
    pool: PoolName,
    args: Parameters<RoundStore['results']>[1],
    page: RoundResultsReply,
  ): Promise<RoundResultsReply> {
    const { job, roundId } = args;
    try {
      if (page.groups.length > 0) {
        const acceptanceOf = await this.ledgers.acceptanceBefore(pool, job, roundId);
        for (const sample of page.groups.flatMap(({ samples }) => samples))
          sample.acceptance = acceptanceOf(sample.tokenCount);
      }
      if (!page.complete) return page;
      const { summary } = await this.ledgers.read(pool, job, roundId);
      return { ...page, ledger: summary };
    } catch (error) {
      // If Redis has lost the round since the page was read, a second read throws GENERATION_CHANGED.
      await this.rounds.results(pool, args);
      throw error;
    }
  }
}

function isEmpty({ groups, complete }: RoundResultsReply): boolean {
  return groups.length === 0 && !complete;
}

/** Appends the groups of a page. The first group may be the rest of the last group in `groups`. */
function append(groups: GroupResult[], page: readonly GroupResult[]): void {
  for (const group of page) {
    const last = groups.at(-1);
    if (last?.more !== true) {
      groups.push(group);
      continue;
    }
    last.samples.push(...group.samples);
    last.digest = group.digest;
    if (group.more !== true) delete last.more;
  }
}
