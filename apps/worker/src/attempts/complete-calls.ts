import { Injectable } from '@nestjs/common';
import { BroomwagonError, LIMITS, type CompleteReply, type CompleteRequest } from '@broomwagon/contracts';
import { Gatherer } from '@broomwagon/engines';
import { ControlPlane } from '@broomwagon/generation';
import { tracing, type RetryOptions } from '@broomwagon/messaging';

/** Time for which samples are reported singly after a message with several has failed, milliseconds. */
const SINGLE_MS = 1_000;

interface Call {
  body: CompleteRequest;
  options: RetryOptions;
  resolve(reply: CompleteReply): void;
  reject(error: unknown): void;
}

/**
 * Reports finished samples. All samples of one turn of the event loop share one message, since a message costs this
 * process and the coordinator more than the rest of the report. Each report ends as if it had its own message.
 */
@Injectable()
export class CompleteCalls {
  private readonly gatherer = new Gatherer<Call>(LIMITS.page, (calls) => void this.sendAll(calls));
  private singleUntilMs = -Infinity;

  constructor(private readonly controlPlane: ControlPlane) {}

  /** Repeats the report until it is answered, fails for good, or the deadline is near. @throws BroomwagonError */
  complete(body: CompleteRequest, options: RetryOptions): Promise<CompleteReply> {
    // A message of several reports has one trace.
    if (tracing.isOn || performance.now() < this.singleUntilMs) return this.completeOne(body, options);
    return new Promise((resolve, reject) => this.gatherer.add({ body, options, resolve, reject }));
  }

  private completeOne(body: CompleteRequest, options: RetryOptions): Promise<CompleteReply> {
    return this.controlPlane.callWithRetry('request.complete', body, options);
  }

  /** Sends calls together, and settles each of them: the method never throws. */
  private async sendAll(calls: readonly Call[]): Promise<void> {
    const sendSingly = ({ body, options, resolve, reject }: Call): void => {
      this.completeOne(body, options).then(resolve, reject);
    };
    const { workerId, workerEpoch } = calls[0]!.body;
    // The epoch of this process may have changed within the turn.
    const isOfOneEpoch = calls.every(({ body }) => body.workerEpoch === workerEpoch);
    if (calls.length === 1 || !isOfOneEpoch) return calls.forEach(sendSingly);
    const completes = calls.map(({ body: { requestId, attempt, finishReason, engineFinishReason, segment, run } }) => {
      return { requestId, attempt, finishReason, engineFinishReason, segment, run };
    });
    try {
      const body = { workerId, workerEpoch, completes };
      const { results } = await this.controlPlane.call('request.complete-many', body);
      for (const [index, call] of calls.entries()) {
        const result = results[index]!;
        if (!('error' in result)) call.resolve(result);
        else if (result.error.retryable) sendSingly(call);
        else call.reject(BroomwagonError.fromWire(result.error));
      }
    } catch {
      // A repeat is safe. A coordinator of the version before does not know the message.
      this.singleUntilMs = performance.now() + SINGLE_MS;
      calls.forEach(sendSingly);
    }
  }
}
