/** What the trajectory of its session has of a generation. */
export interface Recording {
  job: string;
  turn?: number;
  /** Number of the turn for clients; absent: `turn` is the number. */
  number?: number;
  /** Of the pool, when the turn began, and then when it was recorded. */
  stamp?: string;
  /** `pending` until the end; `missing`: see `reason`. */
  state: 'pending' | 'recorded' | 'missing';
  /** Code of the error. */
  reason?: string;
}
