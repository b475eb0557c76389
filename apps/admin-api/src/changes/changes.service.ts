import { Injectable } from '@nestjs/common';
import {
  type AuditEntry,
  BroomwagonError,
  type ErrorCode,
  fieldsOfPath,
  type Route,
  ROUTES,
} from '@broomwagon/contracts';
import { UndeliveredError } from '@broomwagon/messaging';
import { ReplyStore } from '@broomwagon/state';
import type { Identity } from '../auth/identity';
import type { RequestFields } from '../http/request-fields';
import { OperationCaller } from '../operations/operation-caller';
import { AuditLog } from '../audit/audit-log';

export interface Change {
  route: Route;
  fields: RequestFields;
  identity: Identity;
  requestId: string;
  address: string;
}

/** Maximum time for a read of the state for the audit log, milliseconds: a change must not wait for long. */
const SHOW_MS = 1_000;

/** Makes changes, each with an entry in the audit log. Each `Idempotency-Key` makes its change once. */
@Injectable()
export class ChangesService {
  constructor(
    private readonly operations: OperationCaller,
    private readonly replies: ReplyStore,
    private readonly audit: AuditLog,
  ) {}

  /**
   * Makes a change, or finds the reply to an earlier request with the same key. `isNew`: this change has created an
   * object.
   * @throws BroomwagonError of the operation, IDEMPOTENCY_KEY_REUSED, REQUEST_IN_PROGRESS, OUTCOME_UNKNOWN
   */
  async make(change: Change): Promise<{ reply: object; isRepeat: boolean; isNew: boolean }> {
    const { route, fields, identity } = change;
    let isNew = route.creates?.isAlwaysNew === true;
    const process = (isInterrupted = false) =>
      this.makeAudited(change, isInterrupted, () => (isNew = route.creates !== undefined));
    // An operation with an `idField` recognizes a repeat by its id.
    if (fields.idempotencyKey === undefined || route.idField !== undefined) {
      return { reply: await process(), isRepeat: false, isNew };
    }
    const { pool, body, idempotencyKey: key } = fields;
    const request = { method: route.method, path: route.path, pool, body };
    const answer = await this.replies.once({ scope: identity.id, key, request, process, mayHaveEffect });
    return { ...answer, isNew };
  }

  /**
   * @param isInterrupted the first request with this key has no known outcome
   * @param onMissing called when the read of the route finds nothing before the change
   */
  private async makeAudited(change: Change, isInterrupted: boolean, onMissing: () => void): Promise<object> {
    const { route, fields, identity, requestId, address } = change;
    const { pool, body } = fields;
    const before = await this.show(route, fields, identity, onMissing);
    let result: AuditEntry['result'] = 'done';
    let reply: object | undefined;
    try {
      if (isInterrupted && !isFenced(change)) {
        throw new BroomwagonError(
          'OUTCOME_UNKNOWN',
          'The first request with this key has no known outcome: read the state, and use another key',
        );
      }
      reply = await this.operations.call(route, pool, body, identity);
      return reply;
    } catch (error) {
      result = error instanceof BroomwagonError ? error.code : 'INTERNAL';
      throw error;
    } finally {
      const shown = await this.show(route, fields, identity);
      const after = shown ?? (route.isSecret && reply ? withoutToken(reply) : reply);
      const { id: actorId, name: actor, role } = identity;
      const who = { requestId, actorId, actor, role, address };
      const { operation } = route;
      await this.audit.add({ atMs: Date.now(), ...who, operation, pool, request: body, result, before, after });
    }
  }

  /** Reads the state that a route changes; undefined without such a state or without an answer. */
  private async show(
    { shows, path, creates }: Route,
    { pool, body }: RequestFields,
    identity: Identity,
    onMissing?: () => void,
  ) {
    if (shows === undefined) return undefined;
    const read = ROUTES.find(({ method, operation }) => method === 'GET' && operation === shows)!;
    const names = new Set([path, read.path, creates?.path ?? ''].flatMap(fieldsOfPath));
    names.delete('pool');
    const target = Object.fromEntries([...names].map((name) => [name, body[name]]));
    return this.operations.call(read, pool, target, identity, SHOW_MS).catch((error: unknown) => {
      if (error instanceof BroomwagonError && error.code.endsWith('NOT_FOUND')) onMissing?.();
      return undefined;
    });
  }
}

function withoutToken({ token: _token, ...reply }: { token?: string }): object {
  return reply;
}

/** Errors after which a change may still have an effect. */
const UNKNOWN_OUTCOMES: ReadonlySet<ErrorCode> = new Set(['TIMEOUT', 'UNAVAILABLE', 'INTERNAL', 'OUTCOME_UNKNOWN']);

function mayHaveEffect(error: unknown): boolean {
  if (error instanceof UndeliveredError) return false;
  return !(error instanceof BroomwagonError) || UNKNOWN_OUTCOMES.has(error.code);
}

/** Whether a repeated change has no second effect: the change ends the object that it names, or names a version. */
function isFenced({ route: { isFenced, versionField }, fields: { body } }: Change): boolean {
  return isFenced === true || (versionField !== undefined && body[versionField] !== undefined);
}
