import { Injectable } from '@nestjs/common';
import {
  BroomwagonError,
  type LogLevelReply,
  logLevelSubject,
  type PoolName,
  type ReplicasLogLevelReply,
  type SetLogLevelRequest,
} from '@broomwagon/contracts';
import { MessagingClient, UndeliveredError } from '@broomwagon/messaging';
import { Readiness } from '../reports/readiness';

/** Maximum time for the first reply, milliseconds. */
const MAX_WAIT_MS = 2_000;
/** Maximum replicas that an error names. */
const MAX_NAMED = 32;

@Injectable()
export class LogLevels {
  constructor(
    private readonly client: MessagingClient,
    private readonly readiness: Readiness,
  ) {}

  /**
   * Sends the request to every replica that serves the pool. A slow replica may be missing in the reply.
   * @throws BroomwagonError REPLICA_NOT_FOUND for a name that no running replica has; UNAVAILABLE if no named replica
   *   has replied
   */
  async set(pool: PoolName, request: SetLogLevelRequest): Promise<ReplicasLogLevelReply> {
    const replicas = await this.client.requestAll<LogLevelReply>(logLevelSubject(pool), request, MAX_WAIT_MS);
    if (replicas.length === 0) await this.checkNames(pool, request);
    if (replicas.length === 0)
      throw new UndeliveredError('UNAVAILABLE', 'No replica of those that are named has replied');
    return { replicas };
  }

  /** @throws BroomwagonError REPLICA_NOT_FOUND, with the names that there are */
  private async checkNames(pool: PoolName, { app, replicaId }: SetLogLevelRequest): Promise<void> {
    const { replicas } = await this.readiness.read(pool);
    const apps = [...new Set(replicas.map((one) => one.app))];
    if (app !== undefined && !apps.includes(app)) {
      const reason = `No service ${app} serves pool ${pool}; there are: ${apps.join(', ')}`;
      throw new BroomwagonError('REPLICA_NOT_FOUND', reason, { field: 'app', details: { apps } });
    }
    const ids = replicas.filter((one) => one.app === (app ?? one.app)).map((one) => one.replicaId);
    if (replicaId !== undefined && !ids.includes(replicaId)) {
      const named = ids.slice(0, MAX_NAMED);
      const reason = `No replica ${replicaId} serves pool ${pool}; there are: ${named.join(', ')}`;
      throw new BroomwagonError('REPLICA_NOT_FOUND', reason, { field: 'replicaId', details: { replicaIds: named } });
    }
  }
}
