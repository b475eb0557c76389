import { Injectable } from '@nestjs/common';
import { GatewayConfig } from '../../gateway.config';
import { GenerationResponder } from '../../answers/generation-responder';
import type { Exchange } from '../../http/route';
import { type PassedBody, passedRequest } from './passed-request';

/** Passes requests on to an engine, and passes the answers back. */
@Injectable()
export class PassedRequests {
  constructor(
    private readonly responder: GenerationResponder,
    private readonly config: GatewayConfig,
  ) {}

  /**
   * @param route `reason` is absent if the gateway can read the request
   * @returns undefined if the gateway must read the request
   * @throws BroomwagonError VALIDATION_FAILED
   */
  pass(
    exchange: Exchange,
    { reason, ...route }: Omit<PassedBody, 'body' | 'reason'> & { reason: string | undefined },
  ): Promise<void> | undefined {
    const why = reason ?? (this.config.passRequests === 'all' ? 'PASS_REQUESTS' : undefined);
    if (why === undefined) return undefined;
    const { body, request, caller } = exchange;
    return this.responder.respond(exchange, passedRequest({ ...route, body, reason: why }, request.headers, caller));
  }
}
