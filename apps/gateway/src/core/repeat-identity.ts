/** Kinds of identity by which a repeat is recognized: only such a repeat may join a running generation. */
export type RepeatKind = 'id' | 'idempotency-key' | 'session';

/** Identity that a request and its repeats share. */
export interface RepeatIdentity {
  kind: RepeatKind;
  /** Unique among the requests of one key. */
  key: string;
  /** SHA-256 of route and body. */
  digest: string;
}
