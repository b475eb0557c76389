import type { PoolName, Role } from '@broomwagon/contracts';

/** The caller of a request. */
export interface Identity {
  /** Unique: a token or a subject of an issuer. */
  id: string;
  /** Name for people. */
  name: string;
  role: Role;
  /** Undefined: all pools. */
  pools?: readonly PoolName[];
}
