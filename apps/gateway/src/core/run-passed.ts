import { BroomwagonError } from '@broomwagon/contracts';
import type { EngineCalls, Generated, Lease, LeasedCall } from '@broomwagon/generation';
import type { Generation } from './generation';
import { readAnswer } from './passed-answer';

export interface PassedRun {
  engineRequestId: string;
  /** Called once, with the tokens of the answer. */
  onTokens: (count: number) => void;
}

/**
 * Makes one call of an engine whose answer is passed on; takes usage, ids and weights from the answer if it has them.
 */
export async function runPassed(
  calls: EngineCalls,
  call: LeasedCall,
  lease: Lease,
  generation: Generation,
  { engineRequestId, onTokens }: PassedRun,
): Promise<Generated> {
  const onPiece = (piece: Buffer, contentType: string): void => {
    generation.addPiece(piece, contentType);
  };
  const request = { ...generation.input.passed!, engineRequestId };
  const passed = await calls.pass(call, lease, request, onPiece);
  if (!('answer' in passed)) return { tokenCount: 0, ...passed };
  const { status, contentType, body } = passed.answer;
  const result = readAnswer(passed.answer);
  const { tokenCount, tokenIds, finishReason } = result;
  if (finishReason === 'aborted' && generation.input.continuesEngineAborts && generation.answer === undefined) {
    return { tokenCount: 0, stoppedByEngine: true };
  }
  generation.passAnswer({ status, contentType, body, isWhole: true });
  if (status !== 200) {
    return { tokenCount: 0, error: new BroomwagonError('ENGINE_REJECTED', `The engine answered ${status}`) };
  }
  onTokens(tokenCount);
  generation.calls.receive();
  generation.report.takePromptIds(result.promptTokenIds);
  if (tokenIds !== undefined) generation.tokens.take({ ...result, isLast: true });
  const ended = finishReason === 'aborted' ? { stoppedByEngine: true as const } : { finishReason };
  return { tokenCount, result: { ...result, finishReason }, ...ended };
}
