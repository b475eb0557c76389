import { IsIn, IsOptional } from 'class-validator';
import { SUBJECT_ROOT } from './operations';
import { IsId } from './rules';
import type { PoolName } from './scalars';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;
/** Level of a log line. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Subject pattern of every replica of every service, for each served pool. */
export const LOG_LEVEL_PATTERN = `${SUBJECT_ROOT}.*.service.log-level`;

/** `service.log-level`: sets the level of the logs of running services. Each named replica replies. */
export class SetLogLevelRequest {
  /** Name of a service, for example `worker`. Default: all services. */
  @IsOptional() @IsId() app?: string;
  /** Id of one replica, as in the replies. Default: all replicas. */
  @IsOptional() @IsId() replicaId?: string;
  /** Lowest level of the lines that are written. */
  @IsIn(LOG_LEVELS) level!: LogLevel;
}
export function logLevelSubject(pool: PoolName): string {
  return `${SUBJECT_ROOT}.${pool}.service.log-level`;
}
/** Reply of one replica. */
export interface LogLevelReply {
  /** Name of the service of the replica. */
  app: string;
  /** Id of the replica. */
  replicaId: string;
  /** Level that the replica has now. */
  level: LogLevel;
}
/** Reply of admin-api, with all replicas. */
export interface ReplicasLogLevelReply {
  /** The replicas that have replied in time. */
  replicas: LogLevelReply[];
}
