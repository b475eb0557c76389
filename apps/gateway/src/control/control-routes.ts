import type { ServerResponse } from 'node:http';
import { Injectable, Logger } from '@nestjs/common';
import { getHttpStatus, invalidField, isBroomwagonError, type PausePoolRequest } from '@broomwagon/contracts';
import { ControlPlane } from '@broomwagon/generation';
import { GatewayConfig } from '../gateway.config';
import { GatewayMetrics } from '../gateway-metrics';
import { readHeaderText } from '../http/headers';
import type { Exchange, Routes } from '../http/route';
import { sendJson } from '../http/send-json';
import { CONTROL_CALLS, type ControlCall } from './control-table';
import { type EngineAnswer, mergedAnswer, type MergedAnswer } from './engine-answer';
import { EngineFanOut } from './engine-fan-out';
import { WeightChanges } from './weight-changes';

/** Maximum time for which a call that pauses or resumes the pool is repeated, milliseconds. */
const POOL_DEADLINE_MS = 30_000;
const VERSION = /^\d{1,9}$/;

/** Calls by which trainers control engines, made at all engines of the pool. */
@Injectable()
export class ControlRoutes {
  private readonly logger = new Logger(ControlRoutes.name);
  readonly routes: Routes;

  constructor(
    private readonly fanOut: EngineFanOut,
    private readonly weights: WeightChanges,
    private readonly controlPlane: ControlPlane,
    private readonly metrics: GatewayMetrics,
    private readonly config: GatewayConfig,
  ) {
    this.routes = Object.fromEntries(
      CONTROL_CALLS.map((call) => [
        `${call.method} ${call.path}`,
        { role: 'trainer' as const, answer: (exchange: Exchange) => this.counted(call, exchange) },
      ]),
    );
  }

  private async counted(call: ControlCall, exchange: Exchange): Promise<void> {
    let status = 500;
    try {
      status = await this.answer(call, exchange);
    } catch (error) {
      if (isBroomwagonError(error)) status = getHttpStatus(error.code);
      throw error;
    } finally {
      const outcome = status < 400 ? 'done' : status < 500 ? 'refused' : 'failed';
      this.metrics.controlCalls.inc({ outcome });
    }
  }

  /** @returns the status of the answer */
  private async answer(call: ControlCall, { request, response, body, bytes }: Exchange): Promise<number> {
    const { search } = new URL(request.url!, 'http://gateway');
    const sent = { path: `${call.path}${search}`, bytes, body };
    const version = parseVersion(call, body, readHeaderText(request.headers, 'x-broomwagon-weight-version'));
    const mode = parsePauseMode(readHeaderText(request.headers, 'x-broomwagon-weight-mode'));
    const update = () => this.fanOut.call(call, sent);
    if (call.pool === 'pause') return send(response, await this.pause(call, update));
    if (call.pool === 'resume') await this.weights.endOpen();
    const answers = await (version === undefined
      ? update()
      : this.weights.during(version, { mode, isAtomic: call.isAtomic }, update));
    // The pool is resumed even if engines failed: the other engines take requests again.
    if (call.pool === 'resume') await this.setPool('pool.resume', {});
    return send(response, mergedAnswer(answers));
  }

  /** Pauses the pool during an update. If the update fails, a pool that was not paused before is resumed. */
  private async pause(call: ControlCall, update: () => Promise<EngineAnswer[]>): Promise<MergedAnswer> {
    await this.fanOut.serversFor(call);
    const { paused: wasPaused } = await this.controlPlane.call('lb.status', {});
    let merged: MergedAnswer | undefined;
    try {
      await this.setPool('pool.pause', { deadlineMs: call.hasNoDeadline ? undefined : this.config.pauseDeadlineMs });
      merged = mergedAnswer(await update());
      return merged;
    } finally {
      if (!wasPaused && merged?.status !== 200) await this.undoPause(call);
    }
  }

  /** Undoes a pause at all engines: an engine that has not answered may be paused too. Never throws. */
  private async undoPause(call: ControlCall): Promise<void> {
    const path = call.undoneBy!;
    try {
      await this.fanOut.call({ ...call, path }, { path, bytes: Buffer.from('{}'), body: {} });
      await this.setPool('pool.resume', {});
    } catch (error) {
      this.logger.warn({ err: error }, 'A pause that has failed was not undone');
    }
  }

  private async setPool(operation: 'pool.pause' | 'pool.resume', body: PausePoolRequest): Promise<void> {
    await this.controlPlane.callWithRetry(operation, body, { deadlineMs: POOL_DEADLINE_MS });
  }
}

/** @returns the status of the answer */
function send(response: ServerResponse, { status, body }: MergedAnswer): number {
  sendJson(response, status, body);
  return status;
}

/**
 * Version of the weights in an update. A version that is no number is only for trainer and engines: the pool gets no
 * version.
 */
function parseVersion(
  call: ControlCall,
  body: Record<string, unknown>,
  header: string | undefined,
): number | undefined {
  if (call.version === undefined) return undefined;
  if (header !== undefined && !VERSION.test(header)) {
    throw invalidField('x-broomwagon-weight-version', 'must be a whole number of at most 9 digits');
  }
  const given = header ?? body[call.version];
  const isText = typeof given === 'string' || typeof given === 'number';
  return isText && VERSION.test(`${given}`) ? Number(given) : undefined;
}

function parsePauseMode(header: string | undefined): 'abort' | 'wait' {
  if (header === undefined || header === 'abort') return 'abort';
  if (header === 'wait') return 'wait';
  throw invalidField('x-broomwagon-weight-mode', 'must be abort or wait; for keep, pause the engines first');
}
