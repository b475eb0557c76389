import { ERROR_CODES, getHttpStatus, type ErrorCode } from '@broomwagon/contracts';

/** docs/protocol/errors.md: every code a service may answer. */
export function errorsPage(): string {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { retryable, about }]) =>
      `| \`${code}\` | ${retryable ? 'yes' : 'no'} | ${getHttpStatus(code as ErrorCode)} | ${about} |`,
  );
  return [
    '# Errors',
    '',
    'The codes in `error.code` of a reply, and in `code` of a problem of admin-api with its HTTP status ' +
      '([protocol](README.md)). "Retryable": the same body may succeed later; ' +
      'sending it again is always safe. `npm run schema` generates this page.',
    '',
    '| code | retryable | HTTP | meaning |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}
