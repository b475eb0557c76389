import { AdminApiError } from '@broomwagon/admin-client';
import { CommanderError } from 'commander';

export const EXIT = { done: 0, refused: 1, usage: 2, unreachable: 3 } as const;

/** The command line is wrong, or lacks an input. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The command ran, and its result is a failure, for example a wrong count or a different replay. */
export class CommandFailure extends Error {
  override readonly name = 'CommandFailure';
}

const UNREACHABLE = new Set<string>(['UNREACHABLE', 'TIMED_OUT', 'UNEXPECTED_REPLY']);
/** Advice to the user, by the code of an error. */
const ADVICE: Partial<Record<AdminApiError['code'], string>> = {
  UNREACHABLE: 'Check that admin-api runs, and its address in BROOMWAGON_URL or --url.',
  TIMED_OUT: 'Repeat the command with a longer --timeout. A change may have been made: look at it first.',
  UNEXPECTED_REPLY: 'Check that BROOMWAGON_URL or --url is the address of admin-api.',
  UNAUTHENTICATED: 'Set BROOMWAGON_TOKEN to a valid token; `broomwagon tokens create --redis` makes one.',
  FORBIDDEN: 'Use a token with this role and for this pool, and name the pool with --pool.',
  ROUTE_NOT_FOUND: 'Check that BROOMWAGON_URL or --url is the address of admin-api, without a path.',
  POOL_NOT_FOUND: '`broomwagon status` lists the pools.',
  SERVER_NOT_FOUND: '`broomwagon servers` lists the servers of the pool.',
  JOB_NOT_FOUND: '`broomwagon rounds` lists the jobs of the pool.',
  ROUND_NOT_FOUND: '`broomwagon rounds` lists the rounds of the job.',
  REQUEST_NOT_FOUND: '`broomwagon requests --job JOB` lists the requests that are not finished.',
  TIMEOUT: 'A service did not reply in time. A change may have been made: look at it before you repeat the command.',
  VERSION_MISMATCH: '`broomwagon config get` shows the present version.',
  VERSION_NOT_FOUND: '`broomwagon config history` lists the versions.',
};

/** Exit codes by name of an error, not by its class: only commands that use Redis load the last two classes. */
const EXIT_OF: Record<string, number> = {
  UsageError: EXIT.usage,
  CommandFailure: EXIT.refused,
  ConfigurationError: EXIT.usage,
  BroomwagonError: EXIT.refused,
};

/** The exit code of a failed command, and its reason as text or JSON. */
export function describeFailure(failure: unknown, isJson: boolean): { exitCode: number; text: string } {
  if (failure instanceof CommanderError) {
    const isUsage = failure.exitCode !== 0;
    const reason = failure.message.replace(/^error: /, '');
    // Without --json, commander has printed the help or the usage error.
    const text =
      isUsage && isJson ? errorJson({ code: 'UsageError', reason, advice: 'Add --help for the options.' }) : '';
    return { exitCode: isUsage ? EXIT.usage : EXIT.done, text };
  }
  const exitCode = toExitCode(failure);
  const { name, message } = failure as Error;
  const { code, field, retryable, retryAfterMs, requestId } = failure as Partial<AdminApiError>;
  const advice = code === undefined ? undefined : (ADVICE[code] ?? (retryable ? 'Try again later.' : undefined));
  if (isJson) {
    const error = { code: code ?? name, reason: message, field, retryable, retryAfterMs, requestId, advice };
    return { exitCode, text: errorJson(error) };
  }
  const where = field === undefined ? '' : ` (field ${field})`;
  const what = code === undefined ? message : `${code}: ${message}${where}`;
  return { exitCode, text: `error: ${what}\n${advice === undefined ? '' : `${advice}\n`}` };
}

function errorJson(error: object): string {
  return `${JSON.stringify({ error }, null, 2)}\n`;
}

function toExitCode(failure: unknown): number {
  if (failure instanceof AdminApiError) return UNREACHABLE.has(failure.code) ? EXIT.unreachable : EXIT.refused;
  const code = EXIT_OF[(failure as Error).name];
  if (code === undefined) throw failure;
  return code;
}
