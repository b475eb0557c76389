import type { PoolName, Role } from '@broomwagon/contracts';

/** Who sends a request. */
export interface Identity {
  /** Unique: a token or a subject of an issuer. */
  id: string;
  /** For people. */
  name: string;
  role: Role;
  /** Undefined: all pools. */
  pools?: readonly PoolName[];
}
