import {
  LIMITS,
  type GroupResult,
  type JobId,
  type RequestId,
  type RequestSegmentsReply,
  type RoundId,
  type SampleResult,
  type Segment,
} from '@broomwagon/contracts';
import { resultLineOf, type ResultLine } from '../results/result-line';
import type { Operations } from './operations';
import { PayloadTransfer } from './payload-transfer';

/** Payloads fetched at the same time. */
const PARALLEL_SAMPLES = 16;

/** Reads the accepted groups of a round with their tokens, while it is still open. */
export class ResultsReader {
  private readonly payloads: PayloadTransfer;
  private cursor = 0;
  private sampleCursor = 0;
  private done = false;
  /** In the order of acceptance. */
  readonly lines: ResultLine[] = [];

  constructor(
    private readonly operations: Operations,
    private readonly job: JobId,
    private readonly roundId: RoundId,
    private readonly trainerEpoch: number,
  ) {
    this.payloads = new PayloadTransfer(operations, job);
  }

  /** The round is completed and all its groups are in `lines`. */
  get complete(): boolean {
    return this.done;
  }

  /** Reads what has been accepted since the last call. */
  async readNew(): Promise<void> {
    while (!this.done) {
      const { groups, cursor, sampleCursor, complete } = await this.operations.call('round.results', {
        job: this.job,
        roundId: this.roundId,
        cursor: this.cursor,
        sampleCursor: this.sampleCursor,
        limit: LIMITS.groupsPerResultsPage,
        trainerEpoch: this.trainerEpoch,
      });
      this.lines.push(...(await this.linesOf(groups, this.sampleCursor)));
      this.cursor = cursor;
      this.sampleCursor = sampleCursor;
      this.done = complete;
      if (groups.length === 0) return;
    }
  }

  /** Of more samples than a group needs, the first to finish are numbered anew. `known`: of the first group. */
  private async linesOf(groups: readonly GroupResult[], known: number): Promise<ResultLine[]> {
    const samples = groups.flatMap((group, order) =>
      group.samples.map((sample, index) => ({ group, sample, sampleIndex: index + (order === 0 ? known : 0) })),
    );
    const lines: ResultLine[] = [];
    for (let start = 0; start < samples.length; start += PARALLEL_SAMPLES) {
      const page = samples.slice(start, start + PARALLEL_SAMPLES);
      lines.push(
        ...(await Promise.all(
          page.map(({ group, sample, sampleIndex }) => this.lineOf(group.groupId, sampleIndex, sample)),
        )),
      );
    }
    return lines;
  }

  private async lineOf(promptId: string, sampleIndex: number, sample: SampleResult): Promise<ResultLine> {
    const all = sample.segmentsFollow ? await this.readSegments(sample.requestId) : sample.segments;
    const payloads = await Promise.all(all.map(({ ref }) => this.payloads.getSegment(ref)));
    return resultLineOf(
      { promptId, sampleIndex, roundId: this.roundId, finishReason: sample.finishReason },
      all,
      payloads,
    );
  }

  /** Of a sample with too many for a page of results. */
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
