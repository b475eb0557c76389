import { DiscoveryService } from '@nestjs/core';
import type { PoolName } from '@broomwagon/contracts';
import type { DueWork } from '@broomwagon/state';

/** One kind of work that a flag or deadline in Redis has left behind. */
export interface PagedWorkOptions {
  /** Kinds run in ascending order; every kind has a number of its own. */
  order: number;
  isDue: (due: DueWork) => boolean;
  /** The work repeats commands that holders have not confirmed: it runs once in `CUT_REPEAT_MS`, not in each sweep. */
  isRepeat?: boolean;
}

export const RegisteredWork = DiscoveryService.createDecorator<PagedWorkOptions>();

export type RunWork = (pool: PoolName, due: DueWork) => Promise<unknown>;

/**
 * Registers a method of a provider with the sweep. The sweep calls the method for each pool with due work. The method
 * runs page by page, and the transition of each page checks the state again. So all replicas may run the same work at
 * once, and any replica continues the work of a failed replica.
 */
export function PagedWork(
  options: PagedWorkOptions,
): <Method extends RunWork>(target: object, method: string, descriptor: TypedPropertyDescriptor<Method>) => void {
  return RegisteredWork(options);
}
