import type { RequestId, WeightSyncMode } from '@broomwagon/contracts';
import { expect } from 'vitest';
import { LeaseStore } from '../leases';
import type { FunctionRunner } from '../library/function-runner';
import { MoveStore } from '../moves/move.store';
import type { AttemptFence } from '../requests/request.store';
import { ServerStore } from '../servers/server.store';
import { WeightStore } from '../weights/weight.store';

const SERVER = 's';
const KEPT_MS = 600_000;

/** Moves and changes of weights of a pool with one server, with the calls of the coordinator. */
export class ScriptMoves {
  private readonly moves = new MoveStore(this.runner);
  private readonly leases = new LeaseStore(this.runner);
  private readonly servers = new ServerStore(this.runner);
  private readonly weights = new WeightStore(this.runner);
  private weightVersion = 0;
  private calls = 0;

  constructor(
    private readonly runner: FunctionRunner,
    private readonly pool: string,
  ) {}

  /** Registers the server to which requests move and on which they run, with the weights of the pool. */
  async registerServer(): Promise<void> {
    const server = { serverId: SERVER, endpoint: 'http://e', dialect: 'vllm' as const, probe: false, instanceId: 'i' };
    const { weightVersion } = this;
    await this.servers.register(this.pool, { ...server, maxInflight: 10_000, weight: 1, weightVersion });
  }

  /** Sends a plan with one move. @returns the state of the move, or the reason of its refusal */
  async move(requestId: RequestId): Promise<{ state: string; aborts: AttemptFence[] }> {
    const planId = `plan-${this.calls++}`;
    const moves = [{ requestId, toServerId: SERVER }];
    await this.moves.save(this.pool, { planId, moves, summary: '{}', digest: '', keptMs: KEPT_MS });
    const sent = { planId, maxMovesPerRequest: 1_000_000, keptMs: KEPT_MS };
    const { aborts } = await this.moves.send(this.pool, sent);
    const { page } = await this.moves.status(this.pool, { planId, cursor: 0, limit: 1 });
    return { state: page[0]!.state.replace('refused:', ''), aborts };
  }

  /** Gives up moves that are not confirmed. @returns number of such moves */
  async expire(): Promise<number> {
    let expired = 0;
    for await (const page of this.moves.pages('repeat', this.pool, { deadlineMs: -1 })) expired += page.expired;
    return expired;
  }

  /** Changes the weights between two rounds. */
  async setWeights(version: number): Promise<void> {
    this.weightVersion = version;
    const syncId = await this.beginSync('wait');
    await this.registerServer();
    await this.commit(syncId);
  }

  /** Changes the weights, which stops these attempts that run under leases. @returns attempts that were told to stop */
  async stopForWeights(held: readonly AttemptFence[]): Promise<AttemptFence[]> {
    const leases = held.map(({ requestId, workerId, workerEpoch }) => {
      return { acquireId: `lease-${this.calls++}`, requestId, workerId, workerEpoch };
    });
    const { results } = await this.leases.acquire(this.pool, leases);
    for (const result of results) expect(result).toMatchObject({ serverId: SERVER });
    const syncId = await this.beginSync('abort');
    const told: AttemptFence[] = [];
    for await (const page of this.weights.pages('stop', this.pool, { syncId, fenceAfterMs: KEPT_MS })) {
      told.push(...page.aborts);
    }
    const released = leases.map(({ acquireId }) => ({ acquireId }));
    await this.leases.release(this.pool, released);
    await this.commit(syncId);
    return told;
  }

  private async beginSync(mode: WeightSyncMode): Promise<string> {
    const syncId = `sync-${this.calls++}`;
    await this.weights.begin(this.pool, { syncId, version: this.weightVersion, mode, deadlineMs: KEPT_MS });
    return syncId;
  }

  private async commit(syncId: string): Promise<void> {
    await this.weights.end(this.pool, { syncId, outcome: 'committed', reason: 'asked' });
  }
}
