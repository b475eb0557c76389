import { Injectable, Logger } from '@nestjs/common';
import { BroomwagonError, POOL_PATTERN, type Route } from '@broomwagon/contracts';
import { Metrics } from '@broomwagon/platform';
import type { Request } from 'express';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { AuditLog } from '../audit/audit-log';
import { getRequestId } from '../http/request-id';
import type { Identity } from './identity';

/**
 * Maximum records of one caller in an hour. All callers without a valid token count as one caller. The metric counts
 * further refusals.
 */
const MAX_RECORDS = 60;
const HOUR_SECONDS = 3_600;
/** Maximum characters of the ids of a path as JSON. Longer ids are left out of the record. */
const MAX_CHARACTERS = 1_024;

export interface Refusal {
  route: Route;
  request: Request;
  error: unknown;
  /** The caller; undefined without a valid token. */
  identity?: Identity;
}

/** Counts refused requests. The audit log has changes by a known caller; the log has requests without a valid token. */
@Injectable()
export class Refusals {
  private readonly logger = new Logger(Refusals.name);
  private readonly recorded = new RateLimiterMemory({ points: MAX_RECORDS, duration: HOUR_SECONDS });
  private readonly refused;

  constructor(
    private readonly audit: AuditLog,
    metrics: Metrics,
  ) {
    this.refused = metrics.counter('http_refused_total', 'Requests that were refused before their body was read', [
      'code',
    ]);
  }

  /** Counts and records a refusal. Never throws. */
  async add({ route, request, error, identity }: Refusal): Promise<void> {
    if (!(error instanceof BroomwagonError)) return;
    const { code } = error;
    this.refused.inc({ code });
    const isOfToken = code === 'UNAUTHENTICATED' || code === 'FORBIDDEN';
    const isRead = identity !== undefined && route.method === 'GET';
    if (!isOfToken || isRead || !(await this.hasRoom(identity?.id ?? ''))) return;
    const [requestId, address] = [getRequestId(request), request.ip ?? ''];
    if (identity === undefined) {
      const { method, path } = route;
      this.logger.warn({ code, method, path, address, requestId }, 'request without a valid token');
      return;
    }
    const { pool = '', ...ids } = request.params as Record<string, string>;
    await this.audit.add({
      atMs: Date.now(),
      requestId,
      actorId: identity.id,
      actor: identity.name,
      role: identity.role,
      address,
      operation: route.operation,
      ...(POOL_PATTERN.test(pool) ? { pool } : {}),
      ...(JSON.stringify(ids).length <= MAX_CHARACTERS ? { request: ids } : {}),
      result: code,
    });
  }

  private hasRoom(caller: string): Promise<boolean> {
    return this.recorded.consume(caller).then(
      () => true,
      () => false,
    );
  }
}
