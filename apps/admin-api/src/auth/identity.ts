import type { PoolName, Role } from '@broomwagon/contracts';

export interface Identity {
  /** Unique id of a token, or of a subject of an OIDC issuer. */
  id: string;
  name: string;
  role: Role;
  /** Pools that the caller may use; undefined: all pools. */
  pools?: readonly PoolName[];
}
