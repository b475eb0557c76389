/** Record of a generation in the trajectory of its session. */
export interface Recording {
  job: string;
  turn?: number;
  /** Number of the turn for clients; absent: `turn` is the number. */
  number?: number;
  /** Stamp of the pool when the turn began, and later when it was recorded. */
  stamp?: string;
  /** `pending` until the end; `missing`: the reason is in `reason`. */
  state: 'pending' | 'recorded' | 'missing';
  /** Code of the error. */
  reason?: string;
}
