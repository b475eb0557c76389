import { Injectable } from '@nestjs/common';
import type { Granted, Refused, ServerTable } from '../leases/grants';
import { transition } from '../library/function-runner';
import { storeOf } from '../library/store-of';

/** The answer of a parked acquire; the caller of the transition publishes it to `replyTo`. */
export type WaiterAnswer = { acquireId: string; replyTo: string } & ((Granted & { waitedMs: number }) | Refused);
/** What every transition that makes room may answer. */
export interface WaiterAnswers {
  answers: WaiterAnswer[];
  servers: ServerTable;
  /** Further waiters may be granted: call {@link WaiterStore.grant}. */
  more: boolean;
}

/** Parked acquires. */
@Injectable()
export class WaiterStore extends storeOf({
  /** Grants free room to waiters, at most 32. */
  grant: transition<object, WaiterAnswers>('waiters/grant'),
  /** Answers at most 128 parked acquires whose deadline is over. `waiting`: acquires still parked. */
  expire: transition<object, WaiterAnswers & { waiting: number }>('waiters/expire'),
}) {}
