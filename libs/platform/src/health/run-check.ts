import type { ReadinessCheck } from '@broomwagon/contracts';

/**
 * Check of a condition that the service cannot work without. Rejects when it fails; a text is a warning beside success.
 */
export type HealthCheck = () => Promise<unknown>;

/** Runs a check, and resolves with its outcome in any case. */
export async function runCheck(check: string, run: HealthCheck): Promise<ReadinessCheck> {
  try {
    const warning = await run();
    return { check, passes: true, reason: typeof warning === 'string' ? warning : undefined };
  } catch (error) {
    return { check, passes: false, reason: (error as Error).message };
  }
}
