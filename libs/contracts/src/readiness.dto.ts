import { SUBJECT_ROOT } from './operations';
import type { PoolName } from './scalars';

/** Subject pattern of every replica of every service, for each served pool. */
export const READINESS_PATTERN = `${SUBJECT_ROOT}.*.service.readiness`;

/** `service.readiness`: reads the readiness checks of all replicas that serve the pool. Each replica replies. */
export class GetReadinessRequest {}

export function readinessSubject(pool: PoolName): string {
  return `${SUBJECT_ROOT}.${pool}.service.readiness`;
}

/** One check of `/readyz`. */
export interface ReadinessCheck {
  /** Name of the check, for example `redis`. */
  check: string;
  /** Whether the check passes. */
  passes: boolean;
  /** Why the check fails, or a warning of a check that passes. */
  reason?: string;
}

/** Reply of one replica. */
export interface ReadinessReply {
  /** Name of the service of the replica. */
  app: string;
  /** Id of the replica. */
  replicaId: string;
  /** True if all checks pass: then requests may be sent to the replica. */
  ready: boolean;
  /** The checks of `/readyz` of the replica. */
  checks: ReadinessCheck[];
}

/** Reply of admin-api, with all replicas. */
export interface ReplicasReadinessReply {
  /** The replicas that have replied in time; a replica that NATS does not reach is missing. */
  replicas: ReadinessReply[];
}
