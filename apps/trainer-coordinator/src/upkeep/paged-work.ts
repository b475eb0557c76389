import { DiscoveryService } from '@nestjs/core';
import type { PoolName } from '@broomwagon/contracts';
import type { DueWork } from '@broomwagon/state';

/** One kind of work that a flag or deadline in Redis has left behind. */
export interface PagedWorkOptions {
  /** Kinds run in ascending order; every kind has a number of its own. */
  order: number;
  isDue: (due: DueWork) => boolean;
  /** Repeats commands that their holders have not confirmed: runs once in `CUT_REPEAT_MS` instead of in each sweep. */
  isRepeat?: boolean;
}

export const RegisteredWork = DiscoveryService.createDecorator<PagedWorkOptions>();

export type RunWork = (pool: PoolName, due: DueWork) => Promise<unknown>;

/**
 * Registers a method of a provider with the sweep, which calls the method for each pool whose work is due. The method
 * runs page by page. Every page is a transition that checks again: all replicas may run the same work at once, and each
 * replica continues the work of a failed one.
 */
export function PagedWork(
  options: PagedWorkOptions,
): <Method extends RunWork>(target: object, method: string, descriptor: TypedPropertyDescriptor<Method>) => void {
  return RegisteredWork(options);
}
