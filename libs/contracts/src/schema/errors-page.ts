import { ERROR_CODES } from '../errors';

/** docs/protocol/errors.md: every code a service may answer. */
export function errorsPage(): string {
  const rows = Object.entries(ERROR_CODES).map(
    ([code, { retryable, about }]) => `| \`${code}\` | ${retryable ? 'yes' : 'no'} | ${about} |`,
  );
  return [
    '# Errors',
    '',
    'The codes in `error.code` of a reply ([protocol](README.md)). "Retryable": the same body may succeed later; ' +
      'sending it again is always safe. `npm run schema` generates this page.',
    '',
    '| code | retryable | meaning |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}
