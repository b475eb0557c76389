/** The run cannot continue; printed with advice on what to do next. */
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
