import { OPERATIONS, buildPattern, type OperationName } from '@broomwagon/contracts';

/**
 * Asserts at boot that every operation an app owns has a handler (the transport refuses a second one), and that it
 * answers no other app's. Subjects outside the table (commands to one worker) are not checked.
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
