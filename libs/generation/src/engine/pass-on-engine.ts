import type { EngineAdapter, PassedAnswer, PassedRequest, PassOptions } from '@broomwagon/engines';
import type { LeasedCall } from '../leases/leased-call';
import { FAILED_STOP_DEADLINE_MS } from './run-on-engine';
import { stopOnEngine } from './stop-on-engine';

/** How a call whose answer is passed on has ended. */
export type Passed = { answer: PassedAnswer } | { stopped: true } | { error: Error };

/** Runs one call whose answer is passed on, to the end of the call. Then the lease may be released. Never throws. */
export async function passOnEngine(
  engine: Pick<EngineAdapter, 'pass' | 'abort'>,
  call: LeasedCall,
  request: PassedRequest,
  onPiece: PassOptions['onPiece'],
  stopDeadlineMs: number,
): Promise<Passed> {
  let isUnstopped = false;
  const onUnstopped = (): void => void (isUnstopped = true);
  try {
    return { answer: await engine.pass(request, { signal: call.stopSignal, onPiece, onUnstopped }) };
  } catch (error) {
    const deadlineMs = call.isStopped ? stopDeadlineMs : Math.min(stopDeadlineMs, FAILED_STOP_DEADLINE_MS);
    if (isUnstopped) await stopOnEngine(engine, request.engineRequestId, call, deadlineMs);
    return call.isStopped ? { stopped: true } : { error: error as Error };
  }
}
