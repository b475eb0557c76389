/** The command line or an input file is wrong. Nothing has been started; the process ends with exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
