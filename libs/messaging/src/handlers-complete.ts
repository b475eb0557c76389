import { OPERATIONS, buildPattern, type OperationName } from '@broomwagon/contracts';

/**
 * Checks at the start that an app handles every operation that it owns, and no operation of another app. The transport
 * refuses a second handler. Subjects that are no operations (commands to one worker) are not checked.
 * @throws Error naming all faults
 */
export function assertHandlersComplete(app: string, registeredPatterns: readonly string[]): void {
  const problems: string[] = [];
  for (const name of Object.keys(OPERATIONS) as OperationName[]) {
    const pattern = buildPattern(name);
    const isHandled = registeredPatterns.includes(pattern);
    const owner = OPERATIONS[name].owner;
    if (owner === app && !isHandled) {
      problems.push(`${pattern} has no handler: add @Operation('${name}') to a controller`);
    } else if (owner !== app && isHandled) {
      problems.push(`${pattern} belongs to ${owner}`);
    }
  }
  if (problems.length > 0) {
    throw new Error(`The handlers of ${app} do not match the protocol:\n  ${problems.join('\n  ')}`);
  }
}
