import {
  isBroomwagonError,
  LIMITS,
  type GroupId,
  type JobId,
  type ReadGroup,
  type RequestId,
  type RequestSegmentsReply,
  type RoundId,
  type RoundResultsRequest,
  type SampleResult,
  type Segment,
} from '@broomwagon/contracts';
import { buildResultLine, type ResultLine } from '../results/result-line';
import type { Operations } from './operations';
import { PayloadTransfer } from './payload-transfer';

/** Maximum payloads fetched at the same time. */
const PARALLEL_SAMPLES = 16;

/** A read group: its digest, and a line for each of its samples. */
interface GroupLines {
  groupId: GroupId;
  digest: string;
  lines: ResultLine[];
}

interface WholeGroup {
  groupId: GroupId;
  digest: string;
  samples: readonly SampleResult[];
}

/** Reads the accepted groups of a round with their tokens, while it is still open. */
export class ResultsReader {
  private readonly payloads: PayloadTransfer;
  private page: { cursor?: string; complete: boolean } = { complete: false };
  /** Read groups, in the order of acceptance. */
  private groups: GroupLines[] = [];
  /** Samples of a group that ends in a later page. */
  private part: readonly SampleResult[] = [];
  /** Groups whose tokens are not in the payload store. */
  private lost = new Set<GroupId>();
  /** Groups that were read before a restart, which are not fetched again. */
  private kept = new Map<GroupId, GroupLines>();

  constructor(
    private readonly operations: Operations,
    private readonly job: JobId,
    private readonly round: { roundId: RoundId; weightVersion: number },
  ) {
    this.payloads = new PayloadTransfer(operations, job);
  }

  /** Whether the round is completed and all its groups are in `lines`. */
  get complete(): boolean {
    return this.page.complete;
  }

  /** Groups that were accepted, and whose tokens are not in the payload store (any more). */
  get missing(): GroupId[] {
    return [...this.lost];
  }

  /** Result lines of all groups, in the order of acceptance. */
  get lines(): ResultLine[] {
    return this.groups.flatMap(({ lines }) => lines);
  }

  /** Proof for `round.close` that the groups were read. */
  get proof(): { cursor: string; groups?: ReadGroup[] } {
    const groups = this.groups.map(({ groupId, digest }) => ({ groupId, digest }));
    return { cursor: this.page.cursor!, ...(groups.length <= LIMITS.groupsPerClose ? { groups } : {}) };
  }

  /** Starts again from the first page; groups with the same digest are not fetched again. */
  restart(): void {
    for (const group of this.groups) if (!this.lost.has(group.groupId)) this.kept.set(group.groupId, group);
    this.groups = [];
    this.part = [];
    this.lost.clear();
    this.page = { complete: false };
  }

  /** Reads groups that were accepted since the last call, and waits for them at most `waitMs`. */
  async readNew(trainerEpoch: RoundResultsRequest['trainerEpoch'], waitMs = 0): Promise<void> {
    for (let wait = waitMs; !this.complete; wait = 0) {
      const { groups, cursor, complete } = await this.operations.call('round.results', {
        job: this.job,
        roundId: this.round.roundId,
        cursor: this.page.cursor,
        limit: LIMITS.groupsPerResultsPage,
        waitMs: wait,
        trainerEpoch,
      });
      const whole: WholeGroup[] = [];
      let part = this.part;
      for (const { groupId, samples, more, digest } of groups) {
        part = part.concat(samples);
        if (more === true) continue;
        whole.push({ groupId, digest: digest!, samples: part });
        part = [];
      }
      this.groups.push(...(await this.withLines(whole)));
      this.part = part;
      this.page = { cursor, complete };
      if (groups.length === 0) return;
    }
  }

  /**
   * Makes the lines of the groups. If a group has more samples than it needs, the first to finish are numbered again.
   */
  private async withLines(whole: readonly WholeGroup[]): Promise<GroupLines[]> {
    const read = whole.map((group): GroupLines => {
      const known = this.kept.get(group.groupId);
      return known?.digest === group.digest ? known : { groupId: group.groupId, digest: group.digest, lines: [] };
    });
    const toFetch = whole.flatMap(({ samples }, position) =>
      read[position]!.lines.length > 0
        ? []
        : samples.map((sample, index) => ({ group: read[position]!, sample, index })),
    );
    for (let start = 0; start < toFetch.length; start += PARALLEL_SAMPLES) {
      const page = toFetch.slice(start, start + PARALLEL_SAMPLES);
      const lines = await Promise.all(
        page.map(({ group, sample, index }) =>
          this.readLine(group.groupId, index, sample).catch((error: unknown) => {
            if (!isBroomwagonError(error, 'PAYLOAD_NOT_FOUND')) throw error;
            return void this.lost.add(group.groupId);
          }),
        ),
      );
      for (const [position, line] of lines.entries()) if (line) page[position]!.group.lines.push(line);
    }
    return read;
  }

  private async readLine(promptId: string, sampleIndex: number, sample: SampleResult): Promise<ResultLine> {
    const all = sample.segmentsFollow ? await this.readSegments(sample.requestId) : sample.segments;
    const payloads = await Promise.all(all.map(({ ref }) => this.payloads.getSegment(ref)));
    return buildResultLine(
      { promptId, sampleIndex, roundId: this.round.roundId, finishReason: sample.finishReason },
      all,
      payloads,
      this.round.weightVersion,
    );
  }

  /** Segments of a sample that has too many for a page of results. */
  private async readSegments(requestId: RequestId): Promise<Segment[]> {
    const segments: Segment[] = [];
    for (let cursor: number | undefined = 0; cursor !== undefined;) {
      const page: RequestSegmentsReply = await this.operations.call('request.segments', { requestId, cursor });
      segments.push(...page.segments);
      ({ cursor } = page);
    }
    return segments;
  }
}
