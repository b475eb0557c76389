import { transition } from '../library/function-runner';

/** Script `lua/payload/put-chunk.lua`; the chunk is the attachment. */
export const PUT_CHUNK = transition<
  { item: string; index: number; count: number; quotaBytes: number },
  { receivedChunks: number; usedBytes: number }
>('payload/put-chunk');
/** Script `lua/payload/free.lua` */
export const FREE = transition<{ items: string[]; hold: boolean }, { bytes: number[] }>('payload/free');
/** Script `lua/payload/remove.lua` */
export const REMOVE = transition<
  { items: string[]; cutoffMs?: number; incomplete?: true; keepMs?: number },
  { removed: number }
>('payload/remove');
/** Script `lua/payload/touch.lua` */
export const TOUCH = transition<{ items: string[] }, { touched: number }>('payload/touch');
/** Script `lua/payload/list-old.lua` */
export const LIST_OLD = transition<
  { cutoffMs: number; skip: number; limit: number },
  { items: string[]; empty: boolean }
>('payload/list-old');
/** Script `lua/payload/remember-job.lua` */
export const REMEMBER_JOB = transition<{ job: string }, object>('payload/remember-job');
/** Script `lua/payload/forget-job.lua` */
export const FORGET_JOB = transition<{ job: string; cutoffMs: number }, { forgotten: boolean }>('payload/forget-job');
