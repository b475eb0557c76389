import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  patternOf,
  PromptLengthsRequest,
  RememberPromptsRequest,
  type PromptLengthsReply,
  type RememberPromptsReply,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { promptHash, PromptMemoryStore } from '@broomwagon/state';

/** The operations `prompt.remember` and `prompt.lengths`: the memory of response lengths by prompt. */
@Controller()
export class PromptsController {
  constructor(private readonly memory: PromptMemoryStore) {}

  @MessagePattern(patternOf('prompt.remember'))
  async remember(
    @Payload(new ContractPipe(RememberPromptsRequest)) { prompts }: RememberPromptsRequest,
    @Ctx() { pool }: MessageContext,
  ): Promise<RememberPromptsReply> {
    const known = prompts.map(({ promptId, lengths, atCap = false }) => ({
      hash: promptHash(promptId),
      lengths,
      atCap,
    }));
    return { remembered: await this.memory.remember(pool, known) };
  }

  @MessagePattern(patternOf('prompt.lengths'))
  async lengths(
    @Payload(new ContractPipe(PromptLengthsRequest)) { promptIds }: PromptLengthsRequest,
    @Ctx() { pool }: MessageContext,
  ): Promise<PromptLengthsReply> {
    const idOf = new Map(promptIds.map((promptId) => [promptHash(promptId), promptId]));
    const known = await this.memory.lengths(pool, [...idOf.keys()]);
    return {
      prompts: known.map(({ hash, samples, meanLog, deviationLog, capShare }) => ({
        promptId: idOf.get(hash)!,
        samples,
        medianTokens: Math.round(Math.exp(meanLog)),
        deviationLog,
        capShare,
      })),
    };
  }
}
