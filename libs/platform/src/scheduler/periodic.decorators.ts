import { DiscoveryService } from '@nestjs/core';
import type { PoolName } from '@broomwagon/contracts';
import type { ServiceConfig } from '../configuration/service.config';

/**
 * Pause between two runs in milliseconds, or how to read it from the configuration of the app; undefined: never runs.
 */
export type Interval<Config extends ServiceConfig> = number | ((config: Config) => number | undefined);

/** The schedule that a decorator gives a method. */
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
 * Runs the method of a provider at start and then again and again, in each pool of the app, one after the
 * other: `@InEachPool('sweep', (config: CoordinatorConfig) => config.sweepIntervalMs)`. See {@link Scheduler}.
 */
export function InEachPool<Config extends ServiceConfig>(
  name: string,
  interval: Interval<Config>,
): DecoratorOf<(pool: PoolName) => Promise<unknown>> {
  return Scheduled({ name, interval: interval as Interval<ServiceConfig>, inEachPool: true, isImmediate: true });
}

/** Like {@link InEachPool}, for work outside all pools. The signal is aborted when the app stops. */
export function Periodically<Config extends ServiceConfig>(
  name: string,
  interval: Interval<Config>,
  { isImmediate = false } = {},
): DecoratorOf<(signal: AbortSignal) => Promise<unknown>> {
  return Scheduled({ name, interval: interval as Interval<ServiceConfig>, inEachPool: false, isImmediate });
}
