import { Injectable } from '@nestjs/common';
import { BroomwagonError, LIMITS, type OperationName, OPERATIONS, TRAINER_OPERATIONS } from '@broomwagon/contracts';
import { ControlPlane } from '@broomwagon/generation';
import { decodeBody, validate, readWaitMs } from '@broomwagon/messaging';
import type { Exchange, Route, Routes, RouteSource } from '../http/route';
import { sendJson } from '../http/send-json';
import { CALL_TIMEOUT_MS } from './calls';
import { PayloadBytes } from './payload-bytes';
import { ResultsStream } from './results-stream';

/** The operations of trainers over HTTP, with the same requests, replies and errors as on NATS. */
@Injectable()
export class RoundsRoutes implements RouteSource {
  readonly prefix = '/rounds/v1/';
  readonly routes: Routes = {};

  constructor(
    private readonly controlPlane: ControlPlane,
    results: ResultsStream,
    payloads: PayloadBytes,
  ) {
    for (const operation of TRAINER_OPERATIONS.keys()) {
      this.add('POST', operation, LIMITS.bodyBytes, (exchange) => this.call(operation, exchange));
    }
    this.add('GET', 'round.results', 0, (exchange) => results.answer(exchange));
    this.add('PUT', 'payload.put', 0, (exchange) => payloads.put(exchange));
    this.add('GET', 'payload.get', 0, (exchange) => payloads.get(exchange));
  }

  private add(method: string, operation: OperationName, maxBodyBytes: number, answer: Route['answer']): void {
    this.routes[`${method} /rounds/v1/{pool}/${operation}`] = {
      role: TRAINER_OPERATIONS.get(operation),
      maxBodyBytes,
      errorBody: this.errorBody,
      answer: (exchange) => {
        this.requirePool(exchange);
        return answer(exchange);
      },
    };
  }

  /** Errors in the form of NATS, also for paths that are no operation. */
  readonly errorBody = (error: BroomwagonError): object => error.toWire();

  private async call(operation: OperationName, { response, bytes }: Exchange): Promise<void> {
    // Half a surrogate pair is replaced as on NATS.
    const body = decodeBody(bytes);
    // On NATS, the service makes this check. A value that is nested too deeply cannot be sent there.
    validate(OPERATIONS[operation].request as new () => object, body);
    const timeoutMs = CALL_TIMEOUT_MS + readWaitMs(body);
    sendJson(response, 200, await this.controlPlane.call(operation, body as never, { timeoutMs }));
  }

  private requirePool({ pathId }: Exchange): void {
    const { pool } = this.controlPlane;
    if (pathId === pool) return;
    throw new BroomwagonError('POOL_NOT_FOUND', `This gateway serves the pool ${pool}`, { field: 'pool' });
  }
}
