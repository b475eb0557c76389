import { Injectable } from '@nestjs/common';
import type { JobId, RoundId, Route } from '@broomwagon/contracts';
import { inSpan, tracing, TypedClient } from '@broomwagon/messaging';
import type { Request } from 'express';
import { AdminApiConfig } from '../admin-api.config';
import type { RequestFields } from './request-fields';

/**
 * Runs requests in traces: in the trace of the caller (`traceparent`), or in the trace of the round that the request
 * changes. Any other change begins a trace, and any other read has none, because consoles poll.
 */
@Injectable()
export class RequestTraces {
  constructor(
    private readonly client: TypedClient,
    private readonly config: AdminApiConfig,
  ) {}

  async run<T>(route: Route, fields: RequestFields, request: Request, work: () => Promise<T>): Promise<T> {
    if (!tracing.isOn) return work();
    const { method, path } = route;
    const isChange = method !== 'GET';
    const traceparent = request.get('traceparent') ?? (isChange ? await this.findRound(fields) : undefined);
    if (traceparent === undefined && !isChange) return work();
    const attributes = { 'broomwagon.pool': fields.pool, 'http.request.method': method, 'http.route': path };
    return inSpan({ traceparent, name: `${method} ${path}`, kind: 'server', attributes, beginsTrace: true }, work);
  }

  /** Trace context of the round that a request names. */
  private async findRound({ pool, body }: RequestFields): Promise<string | undefined> {
    const { job, roundId } = body as { job?: JobId; roundId?: RoundId };
    if (pool === undefined || job === undefined || roundId === undefined) return undefined;
    const options = { timeoutMs: this.config.callTimeoutMs };
    // Without the round there is no trace; the call of the request reports the error of the round.
    const status = await this.client.call(pool, 'round.status', { job, roundId }, options).catch(() => undefined);
    return status?.traceparent;
  }
}
