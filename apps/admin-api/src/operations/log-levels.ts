import { Injectable } from '@nestjs/common';
import {
  type LogLevelReply,
  logLevelSubject,
  type PoolName,
  type ReplicasLogLevelReply,
  type SetLogLevelRequest,
} from '@broomwagon/contracts';
import { MessagingClient, UndeliveredError } from '@broomwagon/messaging';

/** Maximum time for the first reply, milliseconds. */
const MAX_WAIT_MS = 2_000;

@Injectable()
export class LogLevels {
  constructor(private readonly client: MessagingClient) {}

  /**
   * Sends the request to every replica that serves the pool. A slow replica may be missing in the reply.
   * @throws BroomwagonError UNAVAILABLE if no named replica has replied
   */
  async set(pool: PoolName, request: SetLogLevelRequest): Promise<ReplicasLogLevelReply> {
    const replicas = await this.client.requestAll<LogLevelReply>(logLevelSubject(pool), request, MAX_WAIT_MS);
    if (replicas.length === 0)
      throw new UndeliveredError('UNAVAILABLE', 'No replica of those that are named has replied');
    return { replicas };
  }
}
