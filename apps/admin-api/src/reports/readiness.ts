import { Injectable } from '@nestjs/common';
import {
  type PoolName,
  type ReadinessReply,
  readinessSubject,
  type ReplicasReadinessReply,
} from '@broomwagon/contracts';
import { MessagingClient, UndeliveredError } from '@broomwagon/messaging';

/** Maximum time for the first reply, milliseconds. */
const MAX_WAIT_MS = 2_000;

/** Reads whether running services are ready, with the reasons. */
@Injectable()
export class Readiness {
  constructor(private readonly client: MessagingClient) {}

  /**
   * Reads the readiness of every replica that serves the pool.
   * @throws BroomwagonError UNAVAILABLE if no replica has answered
   */
  async read(pool: PoolName): Promise<ReplicasReadinessReply> {
    const replicas = await this.client.requestAll<ReadinessReply>(readinessSubject(pool), {}, MAX_WAIT_MS);
    // This replica of admin-api answers too, unless NATS is down.
    if (replicas.length === 0) throw new UndeliveredError('UNAVAILABLE', 'No service has answered over NATS');
    const key = ({ app, replicaId }: ReadinessReply) => `${app} ${replicaId}`;
    return { replicas: replicas.toSorted((one, other) => (key(one) < key(other) ? -1 : 1)) };
  }
}
