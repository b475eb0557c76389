/** Error that ends a run that cannot continue. Its message is printed with advice. */
export class RunFailure extends Error {
  override readonly name = 'RunFailure';

  constructor(
    message: string,
    readonly advice: readonly string[],
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
  }
}
