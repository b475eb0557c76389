import { script } from '../scripts/script-runner';

/** Script `lua/payload/put-chunk.lua`; the chunk is the attachment. */
export const PUT_CHUNK = script<
  { item: string; index: number; count: number; quotaBytes: number },
  { receivedChunks: number; usedBytes: number }
>('payload/put-chunk');
/** Script `lua/payload/free.lua` */
export const FREE = script<{ items: string[]; hold: boolean }, { bytes: number[] }>('payload/free');
/** Script `lua/payload/remove.lua` */
export const REMOVE = script<
  { items: string[]; cutoffMs?: number; incomplete?: true; keepMs?: number },
  { removed: number }
>('payload/remove');
/** Script `lua/payload/touch.lua` */
export const TOUCH = script<{ items: string[] }, { touched: number }>('payload/touch');
/** Script `lua/payload/list-old.lua` */
export const LIST_OLD = script<{ cutoffMs: number; skip: number; limit: number }, { items: string[]; empty: boolean }>(
  'payload/list-old',
);
/** Script `lua/payload/remember-job.lua` */
export const REMEMBER_JOB = script<{ job: string }, object>('payload/remember-job');
/** Script `lua/payload/forget-job.lua` */
export const FORGET_JOB = script<{ job: string; cutoffMs: number }, { forgotten: boolean }>('payload/forget-job');
