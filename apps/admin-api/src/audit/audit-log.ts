import { Injectable, Logger } from '@nestjs/common';
import {
  auditSubject,
  AUDIT_STREAM,
  BroomwagonError,
  LIMITS,
  NO_POOL,
  type AuditEntry,
  type ListAuditLogReply,
  type ListAuditLogRequest,
  type PoolName,
} from '@broomwagon/contracts';
import { parseStoredBody, ensureStream, MessagingConnection, readStream } from '@broomwagon/messaging';
import { Metrics } from '@broomwagon/platform';
import { AdminApiConfig } from '../admin-api.config';

const DAY_MS = 86_400_000;
const CONFIRM_MS = 2_000;
/** Maximum entries that are read for one page. */
const MAX_READ = 2_048;
/** Maximum bytes of a request or state as JSON. A larger request or state is left out of the entry. */
const MAX_BYTES = 16_384;

/** Range of entries to read. An absent field sets no limit. */
interface AuditRange {
  pool?: PoolName;
  operation?: string;
  /** First place in the stream. */
  from?: number;
  sinceMs: number;
}
interface PlacedEntry {
  sequence: number;
  entry: AuditEntry;
}

/**
 * Records every change through this API in a stream of JetStream and in the log. If the stream does not take an entry,
 * the change holds, the log has the entry at its highest level, and `audit_entries_lost_total` grows.
 */
@Injectable()
export class AuditLog {
  private readonly logger = new Logger(AuditLog.name);
  private readonly lost;
  private hasStream = false;

  constructor(
    private readonly connection: MessagingConnection,
    private readonly config: AdminApiConfig,
    metrics: Metrics,
  ) {
    this.lost = metrics.counter('audit_entries_lost_total', 'Changes that only the log has, not the audit stream');
  }

  /** Adds an entry. Resolves when the stream has taken or refused the entry. Never throws. */
  async add({ request, before, after, ...entry }: AuditEntry): Promise<void> {
    const small = { ...entry, ...onlySmall({ request: request && withoutPassword(request), before, after }) };
    try {
      await this.ensure();
      const subject = auditSubject(entry.pool ?? NO_POOL, entry.operation);
      const stream = this.connection.nats.jetstream({ timeout: CONFIRM_MS });
      await stream.publish(subject, JSON.stringify(small));
      this.logger.log({ audit: small }, 'change');
    } catch (error) {
      this.hasStream = false;
      this.lost.inc();
      // Only LOG_LEVEL=silent hides this entry.
      this.logger.fatal({ audit: small, err: error }, 'change that the audit stream did not take');
    }
  }

  /** @throws BroomwagonError UNAVAILABLE without JetStream */
  async list(request: ListAuditLogRequest): Promise<ListAuditLogReply> {
    const { pool = '*', operation, actorId, cursor, sinceMs = Date.now() - DAY_MS, limit = LIMITS.page } = request;
    const subject = auditSubject(pool, operation ?? '>');
    const entries: AuditEntry[] = [];
    let read = 0;
    try {
      await this.ensure();
      const position = { stream: AUDIT_STREAM, subject, from: cursor, sinceMs };
      for await (const message of readStream(this.connection, position, limit)) {
        if (entries.length === limit || read === MAX_READ) return { entries, cursor: message.sequence };
        read += 1;
        const entry = parseStoredBody<AuditEntry>(message, ({ operation: of }) => typeof of === 'string');
        if (entry === undefined) continue;
        if (actorId === undefined || entry.actorId === actorId) entries.push(entry);
      }
    } catch (cause) {
      throw new BroomwagonError('UNAVAILABLE', `The audit stream does not answer: ${(cause as Error).message}`, {
        cause,
      });
    }
    return { entries };
  }

  /** Entries from a place in the stream or from a time on, oldest first. @throws BroomwagonError UNAVAILABLE */
  async *read({ pool = '*', operation = '>', from, sinceMs }: AuditRange): AsyncGenerator<PlacedEntry> {
    try {
      await this.ensure();
      const position = { stream: AUDIT_STREAM, subject: auditSubject(pool, operation), from, sinceMs };
      for await (const message of readStream(this.connection, position, LIMITS.page)) {
        const entry = parseStoredBody<AuditEntry>(message, ({ operation: of }) => typeof of === 'string');
        if (entry !== undefined) yield { sequence: message.sequence, entry };
      }
    } catch (cause) {
      throw new BroomwagonError('UNAVAILABLE', `The audit stream does not answer: ${(cause as Error).message}`, {
        cause,
      });
    }
  }

  private async ensure(): Promise<void> {
    if (this.hasStream) return;
    const { auditStreamMaxBytes: maxBytes, auditStreamMaxAgeMs: maxAgeMs, natsStreamReplicas: replicas } = this.config;
    const bounds = { maxBytes, maxAgeMs, replicas, keepsMessages: true };
    await ensureStream(this.connection, { name: AUDIT_STREAM, subjects: [auditSubject('*', '>')], ...bounds });
    this.hasStream = true;
  }
}

/** Hides secrets in the endpoint of a refused request: user and password, or a key in the query. */
function withoutPassword(request: object): object {
  const { endpoint } = request as { endpoint?: unknown };
  if (typeof endpoint !== 'string') return request;
  return { ...request, endpoint: endpoint.replace(/.*@/s, '***@').replace(/[?#].*/s, '?***') };
}

function onlySmall<Fields extends object>(fields: Fields): Partial<Fields> {
  const small = Object.entries(fields).filter(([, value]) => (JSON.stringify(value)?.length ?? Infinity) <= MAX_BYTES);
  return Object.fromEntries(small) as Partial<Fields>;
}
