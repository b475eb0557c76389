import type { components } from './openapi.gen';

type Problem = components['schemas']['Problem'];
/** Failure without problem details of admin-api: no reply, no reply in time, or a reply of another program. */
type FailureCode = 'UNREACHABLE' | 'TIMED_OUT' | 'UNEXPECTED_REPLY';

interface Details {
  code: Problem['code'] | FailureCode;
  reason: string;
  retryable: boolean;
  status?: number;
  field?: string;
  retryAfterMs?: number;
  requestId?: string;
  details?: unknown;
  cause?: unknown;
}

/** Why a call of the REST API failed. */
export class AdminApiError extends Error {
  override readonly name = 'AdminApiError';
  readonly code: Details['code'];
  /** A repeat of the call may succeed later. */
  readonly retryable: boolean;
  /** HTTP status; undefined without a reply. */
  readonly status?: number;
  /** The first wrong field. */
  readonly field?: string;
  /** Time after which the call may be repeated, milliseconds. */
  readonly retryAfterMs?: number;
  /** Id of the request in the logs and in the audit log. */
  readonly requestId?: string;
  readonly details?: unknown;

  constructor({ code, reason, retryable, status, field, retryAfterMs, requestId, details, cause }: Details) {
    super(reason, { cause });
    this.code = code;
    this.retryable = retryable;
    this.status = status;
    this.field = field;
    this.retryAfterMs = retryAfterMs;
    this.requestId = requestId;
    this.details = details;
  }

  /** Explanation of the error, as text. */
  get reason(): string {
    return this.message;
  }

  /**
   * Builds the error of a reply without success: problem details (RFC 9457), or a reply of another program, e.g. a
   * proxy.
   */
  static ofReply({ status, url }: Response, body: unknown): AdminApiError {
    if (!isProblem(body)) {
      const reason = `${url} answered ${status}, not with problem details of Broomwagon`;
      return new AdminApiError({ code: 'UNEXPECTED_REPLY', reason, retryable: status >= 500, status });
    }
    const { detail: reason, instance: requestId, ...problem } = body;
    return new AdminApiError({ ...problem, reason, requestId, status });
  }

  /** Builds the error of a call without a readable reply. */
  static ofFailure(cause: unknown): AdminApiError {
    if (cause instanceof AdminApiError) return cause;
    const { name, message, cause: inner } = cause as Error;
    if (name === 'TimeoutError') {
      return new AdminApiError({ code: 'TIMED_OUT', reason: 'There was no reply in time', retryable: true, cause });
    }
    const code = name === 'SyntaxError' ? 'UNEXPECTED_REPLY' : 'UNREACHABLE';
    const reason = inner instanceof Error && inner.message !== '' ? inner.message : message;
    return new AdminApiError({ code, reason: reason.trim(), retryable: code === 'UNREACHABLE', cause });
  }
}

function isProblem(body: unknown): body is Problem {
  const { code, detail } = (body ?? {}) as Partial<Problem>;
  return typeof code === 'string' && typeof detail === 'string';
}
