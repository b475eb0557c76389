import { ERROR_CODES } from '../errors';

/** docs/protocol/errors.md: every code a service may answer. */
export function errorsPage(): string {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { retryable, about }]) => `| \`${code}\` | ${retryable ? 'yes' : 'no'} | ${about} |`,
  );
  return [
    '# Errors',
    '',
    'What stands under `error.code` of a reply ([protocol](README.md)). "Again": the very same body may succeed later; sending it is always safe. This page is made by `npm run schema`.',
    '',
    '| code | again | what |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}
