import type { TurnRecord, TurnTokens } from '@broomwagon/state';
import { expect, it } from 'vitest';
import { BranchReader } from './trajectory-branches';

it('has no log probability where the engine has computed none', async () => {
  const tokens: TurnTokens = { promptTokenIds: [1], tokenIds: [2, 3, 4], logprobs: [-0.5, null, -0.25] };
  const reader = new BranchReader(() => Promise.resolve(Buffer.from(JSON.stringify(tokens))));
  const turn = { turn: 1, ref: 'r', weights: [], finishReason: 'stop' } as unknown as TurnRecord;
  expect(await reader.next([turn])).toMatchObject({ loss_mask: [0, 1, 1, 1], logprobs: [0, -0.5, null, -0.25] });
});
