import { Injectable } from '@nestjs/common';
import {
  LIMITS,
  type GroupResult,
  type PoolName,
  type RoundResultsReply,
  type RoundResultsRequest,
} from '@broomwagon/contracts';
import { RoundStore } from '@broomwagon/state';

/** A reply stays well below the limit of a message; the next group may be as large as all before it. */
const REPLY_BYTES = LIMITS.bodyBytes / 2;

/** Puts pages of results together from pages of scripts. */
@Injectable()
export class ResultsService {
  constructor(private readonly rounds: RoundStore) {}

  /** @throws BroomwagonError FENCED, ROUND_NOT_FOUND, ROUND_CLOSED */
  async results(pool: PoolName, body: RoundResultsRequest): Promise<RoundResultsReply> {
    const { job, roundId, trainerEpoch, limit = LIMITS.groupsPerResultsPage } = body;
    const groups: GroupResult[] = [];
    let bytes = 0;
    let cursor = body.cursor ?? 0;
    for (;;) {
      const page = await this.rounds.results(pool, {
        job,
        roundId,
        trainerEpoch,
        cursor,
        limit: limit - groups.length,
      });
      for (const group of page.groups) {
        const size = Buffer.byteLength(JSON.stringify(group));
        if (groups.length > 0 && bytes + size > REPLY_BYTES) {
          return { state: page.state, groups, cursor, complete: false };
        }
        groups.push(group);
        bytes += size;
        cursor += 1;
      }
      const { state, complete } = page;
      if (complete || page.groups.length === 0 || groups.length >= limit) return { state, groups, cursor, complete };
    }
  }
}
