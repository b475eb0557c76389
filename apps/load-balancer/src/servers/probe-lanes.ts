import { setTimeout as delay } from 'node:timers/promises';
import type { ServerStatus } from '@broomwagon/contracts';
import type { EngineHealth } from './engine-health';

export type ProbedServer = Pick<ServerStatus, 'serverId' | 'epoch' | 'endpoint' | 'dialect'>;

const FAST_AT_ONCE = 64;
/** Maximum probes at once of servers that did not answer their last probe. Each such probe holds a connection. */
const HANGING_AT_ONCE = 512;
/** Time after which a probe in the fast lane gives its place to the next server, milliseconds. */
const PROMPT_MS = 200;

/** Maximum times of probes, milliseconds. */
export interface ProbePatience {
  /** Time in the fast lane. The next probe of a slower server is in the slow lane. */
  fastMs: number;
  slowMs: number;
}

interface SlowServer {
  pool: string;
  server: ProbedServer;
  /**
   * Whether the last probe got a late answer, for example because this process was slow. Such a server does not wait
   * for servers without an answer.
   */
  answered: boolean;
}

/**
 * Probes servers in two lanes, so that servers without an answer do not delay the other servers. A server that answers
 * promptly is probed in the fast lane, in each round. Any other server is probed in the slow lane, with a longer
 * timeout, because a late engine may be slow, not dead. A server has at most one probe at once.
 */
export class ProbeLanes<Server extends ProbedServer = ProbedServer> {
  private readonly underWay = new Set<string>();
  /** Servers of the slow lane that wait for their turn, the longest wait first. */
  private readonly slow = new Map<string, SlowServer>();
  private hangingUnderWay = 0;

  /** @param onLate called for an answer that came after {@link ask} or {@link answers} had returned */
  constructor(
    private readonly health: EngineHealth,
    private readonly patience: ProbePatience,
    private readonly onLate: (pool: string, server: ProbedServer) => void,
  ) {}

  /** Probes the servers of the fast lane. @returns servers that answered promptly. Never throws. */
  async ask(pool: string, servers: readonly Server[]): Promise<Server[]> {
    const due = servers.filter((server) => {
      const name = buildLaneKey(pool, server);
      return !this.underWay.has(name) && !this.slow.has(name);
    });
    const prompt: Server[] = [];
    const next = due.values();
    const place = async (): Promise<void> => {
      for (const server of next) if (await this.answers(pool, server)) prompt.push(server);
    };
    await Promise.all(Array.from({ length: FAST_AT_ONCE }, place));
    return prompt;
  }

  /** Whether the server answers promptly. Never throws. */
  async answers(pool: string, server: ProbedServer, promptMs = PROMPT_MS): Promise<boolean> {
    const end = new AbortController();
    let isLate = false;
    const answer = this.probe(pool, server, this.patience.fastMs).then((answered) => {
      end.abort();
      if (answered && isLate) this.onLate(pool, server);
      return answered;
    });
    const place = delay(promptMs, undefined, { signal: end.signal }).then(
      () => {
        isLate = true;
        return false;
      },
      () => answer,
    );
    return Promise.race([answer, place]);
  }

  /** Probes servers of the slow lane in the background. @param there all servers of the pool */
  askSlow(pool: string, there: readonly ProbedServer[]): void {
    const names = new Set(there.map((server) => buildLaneKey(pool, server)));
    for (const [name, slow] of this.slow) {
      if (slow.pool !== pool) continue;
      const hung = slow.answered ? 0 : 1;
      if (names.has(name) && this.hangingUnderWay + hung > HANGING_AT_ONCE) continue;
      this.slow.delete(name);
      if (!names.has(name)) continue;
      this.hangingUnderWay += hung;
      void this.probe(pool, slow.server, this.patience.slowMs).then((answered) => {
        this.hangingUnderWay -= hung;
        if (answered) this.onLate(pool, slow.server);
      });
    }
  }

  private async probe(pool: string, server: ProbedServer, timeoutMs: number): Promise<boolean> {
    const name = buildLaneKey(pool, server);
    this.underWay.add(name);
    const startedAt = performance.now();
    const answered = await this.health.answers({ ...server, pool }, timeoutMs);
    this.underWay.delete(name);
    // Timers may come a millisecond early.
    if (performance.now() - startedAt >= this.patience.fastMs - 2) this.slow.set(name, { pool, server, answered });
    return answered;
  }
}

/** Key of a server with its epoch, so that an answer of an earlier start does not count for a later start. */
function buildLaneKey(pool: string, { serverId, epoch, endpoint }: ProbedServer): string {
  return `${pool} ${serverId} ${epoch} ${endpoint}`;
}
