import { Injectable, Logger } from '@nestjs/common';
import {
  BroomwagonError,
  isBroomwagonError,
  type CompleteItem,
  type CompleteManyReply,
  type CompleteManyRequest,
  type CompleteReply,
  type CompleteRequest,
  type PoolName,
  type WireError,
} from '@broomwagon/contracts';
import { failpoint } from '@broomwagon/platform';
import { PayloadStore, RequestStore, type CompleteAnswer, type CompleteItemArgs } from '@broomwagon/state';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { WaitingReaders } from '../rounds/waiting-readers';
import { RoundSweeps } from '../rounds/round-sweeps';
import { WorkerCommands } from '../commands/worker-commands';
import { GrantService } from '../grants/grant.service';
import { toSegmentArgs } from './segment-of';

/** Maximum checks whether the segment of a finished sample is stored. Only a set-back of Redis repeats the check. */
const MAX_LOOKS = 4;

/** Ends samples that workers report as finished. */
@Injectable()
export class CompletionService {
  private readonly logger = new Logger(CompletionService.name);

  constructor(
    private readonly requests: RequestStore,
    private readonly payloads: PayloadStore,
    private readonly grants: GrantService,
    private readonly sweeps: RoundSweeps,
    private readonly commands: WorkerCommands,
    private readonly readers: WaitingReaders,
    private readonly metrics: CoordinatorMetrics,
  ) {}

  /**
   * @throws BroomwagonError FENCED, REQUEST_NOT_FOUND, ROUND_CLOSED, VALIDATION_FAILED, PAYLOAD_FOREIGN, UNAVAILABLE;
   *   PAYLOAD_NOT_FOUND: the sample would finish, but its segment is not in the store, and nothing was changed
   */
  async complete(pool: PoolName, { workerId, workerEpoch, ...item }: CompleteRequest): Promise<CompleteReply> {
    const [result] = await this.finish(pool, { workerId, workerEpoch, completes: [item] });
    if (result instanceof BroomwagonError) throw result;
    return result!;
  }

  /** Each sample has a result of its own. @throws BroomwagonError UNAVAILABLE; repeating is safe */
  async completeMany(pool: PoolName, body: CompleteManyRequest): Promise<CompleteManyReply> {
    const results = await this.finish(pool, body);
    return { results: results.map((result) => (result instanceof BroomwagonError ? this.toRefused(result) : result)) };
  }

  /**
   * Completes the samples, and takes the steps that each answer requires. Checks a segment again if Redis was set back,
   * because Redis may have lost the segment.
   */
  private async finish(
    pool: PoolName,
    { workerId, workerEpoch, completes }: CompleteManyRequest,
  ): Promise<(CompleteReply | BroomwagonError)[]> {
    const results: (CompleteReply | BroomwagonError)[] = [];
    let open = [...completes.keys()];
    for (let looks = 1; open.length > 0; looks += 1) {
      const stamp = this.requests.seenStamp(pool);
      const items = await Promise.all(open.map((position) => this.toArgs(pool, completes[position]!)));
      await failpoint('coordinator.complete.after-look');
      const checked: { position: number; args: CompleteItemArgs }[] = [];
      for (const [index, args] of items.entries()) {
        if (args instanceof BroomwagonError) results[open[index]!] = args;
        else checked.push({ position: open[index]!, args });
      }
      if (checked.length === 0) break;
      const args = { workerId, workerEpoch, stamp, completes: checked.map((one) => one.args) };
      const answers = await this.requests.completeMany(pool, args);
      open = [];
      for (const [index, answer] of answers.entries()) {
        const { position } = checked[index]!;
        if (isBroomwagonError(answer, 'GENERATION_CHANGED') && looks < MAX_LOOKS) open.push(position);
        results[position] = answer instanceof BroomwagonError ? toLastError(answer) : this.finished(pool, answer);
      }
    }
    await failpoint('coordinator.complete.before-reply');
    return results;
  }

  private toRefused(error: BroomwagonError): { error: WireError } {
    // The transport logs defects only of whole messages.
    if (error.code === 'INTERNAL') this.logger.error({ err: error }, 'A sample was not completed');
    return { error: error.toWire() };
  }

  /** Arguments of one sample, or the error that refuses it. */
  private async toArgs(pool: PoolName, item: CompleteItem): Promise<CompleteItemArgs | BroomwagonError> {
    try {
      const segment = toSegmentArgs(this.payloads, pool, item);
      const isMissing = item.segment !== undefined && !(await this.isStored(item.segment.ref));
      return Object.assign({}, item, segment, { isMissing });
    } catch (error) {
      if (isBroomwagonError(error)) return error;
      throw error;
    }
  }

  /** Takes the steps that the end of a sample requires. @returns the reply to its worker */
  private finished(pool: PoolName, answer: CompleteAnswer): CompleteReply {
    const { state, groupAccepted, roundCompleted } = answer;
    this.metrics.attempts.inc({ outcome: state });
    this.metrics.observeMove(answer.moveTimes);
    this.commands.abort(pool, 'cut', answer.aborts);
    if (roundCompleted) this.sweeps.cutSoon(pool, answer);
    if (groupAccepted || roundCompleted) this.readers.wake(pool, answer);
    if (answer.madeRoom) this.grants.soon(pool);
    return { state, groupAccepted, roundCompleted };
  }

  /**
   * Whether a payload is stored: Redis may lose a payload before the message that refers to the payload arrives. Only a
   * finished sample is checked. A resumed sample generates a missing segment again.
   */
  private async isStored(ref: string): Promise<boolean> {
    try {
      await this.payloads.stat(ref);
      return true;
    } catch (error) {
      if (isBroomwagonError(error, 'PAYLOAD_NOT_FOUND') || isBroomwagonError(error, 'PAYLOAD_INCOMPLETE')) return false;
      throw error;
    }
  }
}

/** The error of a sample for its worker: the segment cannot be checked while Redis is set back again and again. */
function toLastError(error: BroomwagonError): BroomwagonError {
  if (error.code !== 'GENERATION_CHANGED') return error;
  return new BroomwagonError('UNAVAILABLE', `Redis was set back ${MAX_LOOKS} times`, { cause: error });
}
