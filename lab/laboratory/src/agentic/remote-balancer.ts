import type { Epoch, WorkerId } from '@broomwagon/contracts';
import type { TypedClient } from '@broomwagon/messaging';
import type { AgenticRequest, RemoteRouter } from './agentic-run';

/** Routes turns through a running load-balancer, whose servers are `server-0`, `server-1`, ... */
export class RemoteBalancer implements RemoteRouter {
  private readonly leases = new Map<string, string>();
  private acquired = 0;

  constructor(
    private readonly client: TypedClient,
    private readonly pool: string,
    private readonly worker: { workerId: WorkerId; workerEpoch: Epoch },
  ) {}

  async choose({ sessionId, groupId, requestId, contextTokens }: AgenticRequest): Promise<number> {
    const acquireId = `turn-${++this.acquired}`;
    const request = { ...this.worker, acquireId, requestId, sessionId, groupId, contextTokens };
    const reply = await this.client.call(this.pool, 'lb.acquire', request);
    this.leases.set(sessionId, acquireId);
    return Number(reply.serverId.slice('server-'.length));
  }

  async released(_server: number, { sessionId }: AgenticRequest): Promise<void> {
    const acquireId = this.leases.get(sessionId)!;
    this.leases.delete(sessionId);
    await this.client.call(this.pool, 'lb.release', { acquireId, outcome: 'finished' });
  }
}
