import type { PoolName, Role } from '@broomwagon/contracts';

/** The caller of a request. */
export interface Identity {
  /** Unique id of a token, or of a subject of an OIDC issuer. */
  id: string;
  /** Name for people. */
  name: string;
  role: Role;
  /** Undefined: all pools. */
  pools?: readonly PoolName[];
}
