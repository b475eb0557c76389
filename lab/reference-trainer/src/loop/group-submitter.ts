import {
  type Epoch,
  type GroupSubmission,
  isBroomwagonError,
  type JobId,
  LIMITS,
  type RoundId,
  type SamplingParameters,
} from '@broomwagon/contracts';
import type { PromptRecord } from '../prompts/prompt-record';
import type { Operations } from './operations';
import { PayloadTransfer } from './payload-transfer';

/** Well below the body limit of the protocol, so that many inline prompts of nearly 32 kB fit. */
const PAGE_BYTES = LIMITS.bodyBytes / 2;

/** Settings of the groups that are made of prompts. */
export interface GroupSettings {
  samples: number;
  maxTokens: number;
  sampling: SamplingParameters;
}

function countPromptBytes({ prompt }: PromptRecord): number {
  return Buffer.byteLength(JSON.stringify(prompt));
}

/**
 * Whether the prompt is part of the call, so that the coordinator stores it. The trainer stores other prompts before.
 */
function isInline(record: PromptRecord): boolean {
  return countPromptBytes(record) <= LIMITS.inlinePromptBytes;
}

/** Sends prompts into a round: small ones inline, large ones by reference, in pages. */
export class GroupSubmitter {
  private readonly payloads: PayloadTransfer;

  constructor(
    private readonly operations: Operations,
    private readonly job: JobId,
    private readonly settings: GroupSettings,
  ) {
    this.payloads = new PayloadTransfer(operations, job);
  }

  /**
   * Submits all prompts, page by page; repeating it changes nothing.
   * @returns false when the round refused further groups before all were submitted: the caller asks which groups are
   * known
   */
  async submit(roundId: RoundId, trainerEpoch: Epoch, prompts: readonly PromptRecord[]): Promise<boolean> {
    let page: GroupSubmission[] = [];
    let bytes = 0;
    const send = async (): Promise<void> => {
      if (page.length === 0) return;
      await this.operations.call('round.submit', { job: this.job, roundId, trainerEpoch, groups: page });
      page = [];
      bytes = 0;
    };
    try {
      for (const record of prompts) {
        const promptBytes = countPromptBytes(record);
        const inline = isInline(record);
        if (page.length === LIMITS.groupsPerSubmit || (inline && bytes + promptBytes > PAGE_BYTES)) await send();
        page.push(await this.buildGroup(record, inline));
        if (inline) bytes += promptBytes;
      }
      await send();
      return true;
    } catch (error) {
      if (isBroomwagonError(error, 'ROUND_NOT_OPEN')) return false;
      throw error;
    }
  }

  private async buildGroup(record: PromptRecord, inline: boolean): Promise<GroupSubmission> {
    const { samples, maxTokens, sampling } = this.settings;
    return {
      groupId: record.id,
      samples,
      maxTokens,
      sampling,
      ...(record.domain === undefined ? {} : { domain: record.domain }),
      ...(inline
        ? { prompt: record.prompt }
        : { promptRef: await this.payloads.put(record.id, 'prompt', record.prompt) }),
    };
  }
}
