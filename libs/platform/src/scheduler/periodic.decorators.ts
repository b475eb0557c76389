import { DiscoveryService } from '@nestjs/core';
import type { PoolName } from '@broomwagon/contracts';
import type { ServiceConfig } from '../configuration/service.config';

/**
 * Pause between two runs, milliseconds, or a function that reads the pause from the configuration; undefined: no runs.
 */
export type Interval<Config extends ServiceConfig> = number | ((config: Config) => number | undefined);

/** Schedule of a method with a decorator. */
export interface Schedule {
  /** Name in logs and in the metric `task_failures_total`. */
  name: string;
  interval: Interval<ServiceConfig>;
  inEachPool: boolean;
  isImmediate: boolean;
}

export const Scheduled = DiscoveryService.createDecorator<Schedule>();

type DecoratorOf<Work> = <Method extends Work>(
  target: object,
  method: string,
  descriptor: TypedPropertyDescriptor<Method>,
) => void;

/**
 * Runs a method at the start and then periodically, in each pool of the app, one pool after the other:
 * `@InEachPool('sweep', (config: CoordinatorConfig) => config.sweepIntervalMs)`. See {@link Scheduler}.
 */
export function InEachPool<Config extends ServiceConfig>(
  name: string,
  interval: Interval<Config>,
): DecoratorOf<(pool: PoolName) => Promise<unknown>> {
  return Scheduled({ name, interval: interval as Interval<ServiceConfig>, inEachPool: true, isImmediate: true });
}

/** Runs a method periodically, outside all pools. The signal of the method is aborted when the app stops. */
export function Periodically<Config extends ServiceConfig>(
  name: string,
  interval: Interval<Config>,
  { isImmediate = false } = {},
): DecoratorOf<(signal: AbortSignal) => Promise<unknown>> {
  return Scheduled({ name, interval: interval as Interval<ServiceConfig>, inEachPool: false, isImmediate });
}
