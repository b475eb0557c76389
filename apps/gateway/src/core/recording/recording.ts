/** Record of a generation in the trajectory of its session. */
export type Recording = Turn & TurnState;

interface Turn {
  readonly job: string;
  readonly turn?: number;
  /** Number of the turn for clients; absent: `turn` is the number. */
  readonly number?: number;
  /** Stamp of the pool when the turn began, and later when it was recorded. */
  readonly stamp?: string;
}

/** State of a turn; `pending` until the end of the response. A reason is an error code: the turn cannot be recorded. */
type TurnState =
  | { readonly state: 'pending'; readonly reason?: string }
  | { readonly state: 'recorded'; readonly reason?: undefined }
  | { readonly state: 'missing'; readonly reason: string };
