import { Injectable } from '@nestjs/common';
import type { Granted, Refused, ServerTable } from '../leases/grants';
import { transition, FunctionRunner } from '../library/function-runner';

/** The answer of a parked acquire; whoever ran the transition publishes it to `replyTo`. */
export type WaiterAnswer = { acquireId: string; replyTo: string } & (Granted | Refused);
/** What every transition that makes room may answer. */
export interface WaiterAnswers {
  answers: WaiterAnswer[];
  servers: ServerTable;
  /** Further waiters may be granted: call {@link WaiterStore.grant}. */
  more: boolean;
}

const TRANSITIONS = {
  grant: transition<object, WaiterAnswers>('waiters/grant'),
  expire: transition<object, WaiterAnswers & { waiting: number }>('waiters/expire'),
};

/** Parked acquires. */
@Injectable()
export class WaiterStore {
  constructor(private readonly runner: FunctionRunner) {}

  /** Grants free room to waiters, at most 32. */
  grant(pool: string): Promise<WaiterAnswers> {
    return this.runner.run(TRANSITIONS.grant, pool, {});
  }

  /** Answers at most 128 parked acquires whose deadline is over. `waiting`: acquires still parked. */
  expire(pool: string): Promise<WaiterAnswers & { waiting: number }> {
    return this.runner.run(TRANSITIONS.expire, pool, {});
  }
}
