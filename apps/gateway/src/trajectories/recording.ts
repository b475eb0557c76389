/** What the trajectory of its session has of a generation. */
export interface Recording {
  job: string;
  turn?: number;
  /** `pending` until the end; `missing`: see `reason`. */
  state: 'pending' | 'recorded' | 'missing';
  /** Code of the error. */
  reason?: string;
}
