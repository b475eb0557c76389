import {
  BroomwagonError,
  type OperationName,
  type ReplyOf,
  type RequestOf,
  type WireError,
} from '@broomwagon/contracts';
import { type RetryOptions, withRetry } from '@broomwagon/messaging';

/** The operations of trainers over HTTP, through a gateway, with the same errors as over NATS. */
export class GatewayClient {
  constructor(
    /** Address of the gateway now: it may have another port when it was restarted. */
    private readonly url: () => string,
    private readonly key: string | undefined,
  ) {}

  /** Repeats a call until it succeeds, fails for good or the deadline is near. @throws BroomwagonError */
  callWithRetry<Name extends OperationName>(
    pool: string,
    operation: Name,
    body: RequestOf<Name>,
    options: RetryOptions,
  ): Promise<ReplyOf<Name>> {
    const path = `/rounds/v1/${pool}/${operation}`;
    return withRetry(async (timeoutMs) => (await this.post(path, body, timeoutMs)) as ReplyOf<Name>, options);
  }

  private async post(path: string, body: object, timeoutMs: number): Promise<unknown> {
    let reply: { error?: WireError };
    try {
      const answer = await fetch(`${this.url()}${path}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', ...(this.key && { Authorization: `Bearer ${this.key}` }) },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(timeoutMs),
      });
      reply = (await answer.json()) as typeof reply;
    } catch (cause) {
      const code = (cause as Error).name === 'TimeoutError' ? 'TIMEOUT' : 'UNAVAILABLE';
      throw new BroomwagonError(code, `The gateway does not answer ${path}`, { cause });
    }
    if (reply.error !== undefined) throw BroomwagonError.fromWire(reply.error);
    return reply;
  }
}
