import { Injectable } from '@nestjs/common';
import {
  type PoolName,
  type ReadinessReply,
  readinessSubject,
  type ReplicasReadinessReply,
} from '@broomwagon/contracts';
import { MessagingClient } from '@broomwagon/messaging';

/** Maximum time for the first reply, milliseconds. */
const MAX_WAIT_MS = 2_000;

/** Reads whether running services are ready, with the reasons. */
@Injectable()
export class Readiness {
  constructor(private readonly client: MessagingClient) {}

  /**
   * Reads the readiness of every replica that serves the pool.
   * @throws BroomwagonError UNAVAILABLE if NATS delivers the request to no replica
   */
  async read(pool: PoolName): Promise<ReplicasReadinessReply> {
    const replicas = await this.client.requestAll<ReadinessReply>(readinessSubject(pool), {}, MAX_WAIT_MS);
    const key = ({ app, replicaId }: ReadinessReply) => `${app} ${replicaId}`;
    return { replicas: replicas.toSorted((one, other) => (key(one) < key(other) ? -1 : 1)) };
  }
}
