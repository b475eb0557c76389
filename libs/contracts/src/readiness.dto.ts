import { SUBJECT_ROOT } from './operations';
import type { PoolName } from './scalars';

/** Subject that every replica of every service takes, in each pool that it serves. */
export const READINESS_PATTERN = `${SUBJECT_ROOT}.*.service.readiness`;

/** `service.readiness`: reads whether each replica that serves the pool can work, and why not. Each replica replies. */
export class GetReadinessRequest {}

/** Subject of this operation in one pool. */
export function readinessSubject(pool: PoolName): string {
  return `${SUBJECT_ROOT}.${pool}.service.readiness`;
}

/** One check of `/readyz`. */
export interface ReadinessCheck {
  /** Name of the check, for example `redis`. */
  check: string;
  /** Whether the check passes. */
  passes: boolean;
  /** Why the check fails; of a check that passes: a warning. */
  reason?: string;
}

/** Reply of one replica. */
export interface ReadinessReply {
  /** Name of its service. */
  app: string;
  /** Id of the replica. */
  replicaId: string;
  /** Whether all checks pass: requests may be sent to the replica. */
  ready: boolean;
  /** The checks of its `/readyz`. */
  checks: ReadinessCheck[];
}

/** Reply of admin-api. */
export interface ReplicasReadinessReply {
  /** The replicas that have replied in time; a replica that NATS does not reach is missing. */
  replicas: ReadinessReply[];
}
