import { isObject, type ServerStatus, type WireError } from '@broomwagon/contracts';

export interface EngineAnswer {
  server: ServerStatus;
  /** HTTP status; absent: the engine did not answer, or was not called. */
  status?: number;
  /** Body of the answer: JSON, or text that is not JSON. */
  body?: unknown;
  /** Reason why there is no answer. */
  error?: Pick<WireError, 'code' | 'message' | 'retryable'>;
  /** The engine was not called, because its server has failed. */
  isSkipped?: boolean;
}

export interface MergedAnswer {
  status: number;
  body: object;
}

export function isDone({ status = 0, body }: EngineAnswer): boolean {
  return status >= 200 && status < 300 && (body as { success?: unknown } | null | undefined)?.success !== false;
}

/** Whether an engine has refused the request (4xx), instead of failing at it. */
export function isRefused({ status = 0 }: EngineAnswer): boolean {
  return status >= 400 && status < 500;
}

/** Functions that merge the values of engines in one field. */
const MERGES: Record<string, (values: unknown[]) => unknown> = {
  success: (values) => values.every(Boolean),
  is_paused: (values) => values.every(Boolean),
  is_sleeping: (values) => values.every(Boolean),
  world_size: (values) => values.reduce((sum: number, value) => sum + Number(value), 0),
  results: (values) => values.flat(),
  weight_version: oldest,
};

/**
 * Builds the answer to a call of all engines: the fields of the first answer, merged by {@link MERGES}, and the field
 * `engines` with each answer.
 */
export function mergedAnswer(answers: EngineAnswer[]): MergedAnswer {
  const engines = answers.map(({ server, status, body, error, isSkipped }) => ({
    server_id: server.serverId,
    url: server.endpoint,
    ...(isSkipped ? { skipped: `the server is ${server.state}` } : { status: status ?? null, body, error }),
  }));
  const called = answers.filter(({ isSkipped }) => !isSkipped);
  const failed = called.filter((answer) => !isDone(answer));
  if (failed.length > 0) return { status: failureStatus(failed), body: { ...buildFailure(failed, called), engines } };
  const bodies = called.map(({ body }) => body).filter(isObject);
  const merged: Record<string, unknown> = { ...bodies[0] };
  for (const [name, merge] of Object.entries(MERGES)) {
    if (Object.hasOwn(merged, name)) merged[name] = merge(bodies.map((body) => body[name]));
  }
  return { status: 200, body: { ...merged, engines } };
}

/** HTTP status of failed calls: 4xx if all failed engines refuse for good; else 502. */
function failureStatus(failed: EngineAnswer[]): number {
  const statuses = failed.map(({ status = 502 }) => (status < 400 ? 400 : status));
  return statuses.find((status) => status >= 500) === undefined ? statuses[0]! : 502;
}

function buildFailure(failed: EngineAnswer[], called: EngineAnswer[]): object {
  const [{ server, status, error }] = failed as [EngineAnswer];
  const reason = error?.message ?? `${server.endpoint} answered ${status}`;
  const message = `${failed.length} of ${called.length} engines failed; ${server.serverId}: ${reason}`;
  const code = failureStatus(failed);
  const type = code < 500 ? 'ENGINE_REJECTED' : 'ENGINE_ERROR';
  return { success: false, message, error: { message, type, param: null, code, retryable: code >= 500 } };
}

/** The version that all engines have reached: the lowest number, or the first version if a version is no number. */
function oldest(versions: unknown[]): unknown {
  const isNumbered = versions.every((version) => /^\d+$/.test(String(version)));
  return isNumbered ? [...versions].sort((a, b) => Number(a) - Number(b))[0] : versions[0];
}
