import type { GenerationInput } from './generation-input';

/** A request for at most 9 tokens whose response may be continued. */
export const INPUT: GenerationInput = {
  prompt: { promptTokenIds: [1] },
  sampling: {},
  maxTokens: 9,
  keepsStop: false,
  isContinued: true,
  continuesEngineAborts: false,
  placement: {},
};
