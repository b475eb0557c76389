import { Injectable } from '@nestjs/common';
import type { WaiterAnswers } from '../leases/grants';
import { transition } from '../library/function-runner';
import { createStoreClass } from '../library/store-of';

@Injectable()
export class WaiterStore extends createStoreClass({
  /** Grants free room to waiters, at most 32. */
  grant: transition<object, WaiterAnswers>('waiters/grant'),
  /** Answers at most 128 parked acquires whose deadline is over. `waiting`: number of acquires still parked. */
  expire: transition<object, WaiterAnswers & { waiting: number }>('waiters/expire'),
}) {}
