import { SUBJECT_ROOT } from './operations';
import type { Integer, PoolName } from './scalars';

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

/** An alarm that a replica has raised, and that has not ended. */
export interface ReplicaAlarm {
  /** Pool of the alarm; `*`: of no single pool. */
  pool: string;
  /** Name of the alarm, as in `broomwagon_alarms_active`. */
  alarm: string;
  /** What the replica has logged. */
  message: string;
  /** When the alarm was raised, by the clock of the replica, milliseconds since 1970. */
  sinceMs: Integer;
}

/** Reply of one replica. */
export interface ReadinessReply {
  /** Name of the service of the replica. */
  app: string;
  /** Id of the replica. */
  replicaId: string;
  /** Version of Broomwagon; absent for a replica of an earlier release. */
  version?: string;
  /** True if all checks pass: then requests may be sent to the replica. */
  ready: boolean;
  /** The checks of `/readyz` of the replica. */
  checks: ReadinessCheck[];
  /** The alarms of the replica, of all pools; absent for a replica of an earlier release. */
  alarms?: ReplicaAlarm[];
}

/** Reply of admin-api, with all replicas. */
export interface ReplicasReadinessReply {
  /** The replicas that have replied in time; a replica that NATS does not reach is missing. */
  replicas: ReadinessReply[];
}
