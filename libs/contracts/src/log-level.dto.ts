import { IsIn, IsOptional, IsString, MaxLength } from 'class-validator';
import { SUBJECT_ROOT } from './operations';
import type { PoolName } from './scalars';

export const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;
/** Level of a log line. */
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Subject that every replica of every service takes, in each pool that it serves. */
export const LOG_LEVEL_PATTERN = `${SUBJECT_ROOT}.*.service.log-level`;

/** `service.log-level`: sets the level of the logs of running services. Each replica that is named replies. */
export class SetLogLevelRequest {
  /** Name of a service, for example `worker`. Default: all. */
  @IsOptional() @IsString() @MaxLength(64) app?: string;
  /** One replica, as in the replies. Default: all. */
  @IsOptional() @IsString() @MaxLength(64) replicaId?: string;
  /** Lines of lower levels are not written. */
  @IsIn(LOG_LEVELS) level!: LogLevel;
}
/** Subject of this operation in one pool. */
export function logLevelSubject(pool: PoolName): string {
  return `${SUBJECT_ROOT}.${pool}.service.log-level`;
}
/** Reply of one replica. */
export interface LogLevelReply {
  /** Name of its service. */
  app: string;
  /** Id of the replica. */
  replicaId: string;
  /** The level that it writes now. */
  level: LogLevel;
}
/** Reply of admin-api. */
export interface ReplicasLogLevelReply {
  /** The replicas that have replied in time. */
  replicas: LogLevelReply[];
}
