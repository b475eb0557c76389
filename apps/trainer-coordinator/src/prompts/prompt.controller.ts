import { Controller } from '@nestjs/common';
import { PromptLengthsRequest, RememberPromptsRequest } from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { promptHash, PromptMemoryStore } from '@broomwagon/state';

/** The operations `prompt.*`: the memory of response lengths by prompt. */
@Controller()
export class PromptController {
  constructor(private readonly memory: PromptMemoryStore) {}

  @Operation('prompt.remember')
  async remember({ prompts, rememberId }: RememberPromptsRequest, { pool }: MessageContext) {
    const known = prompts.map(({ promptId, lengths, atCap = false }) => ({
      hash: promptHash(promptId),
      lengths,
      atCap,
    }));
    return { remembered: await this.memory.remember(pool, known, rememberId) };
  }

  @Operation('prompt.lengths')
  async lengths({ promptIds }: PromptLengthsRequest, { pool }: MessageContext) {
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
