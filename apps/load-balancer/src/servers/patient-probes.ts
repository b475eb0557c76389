import type { ServerStatus } from '@broomwagon/contracts';
import type { EngineHealth } from './engine-health';

/** What is asked, and which start of it. */
export type ProbedServer = Pick<ServerStatus, 'serverId' | 'epoch' | 'endpoint' | 'dialect'>;

/** How long a round of probes waits, and how long each probe may take in all, milliseconds. */
export interface Patience {
  roundMs: number;
  probeMs: number;
}

/**
 * Probes that outlive their round: an engine that answers late is slow, not dead. It is not asked again before that, so
 * that a busy one is not asked ever more.
 */
export class PatientProbes {
  private readonly underWay = new Set<string>();

  /** @param onLate an answer that came after its round */
  constructor(
    private readonly health: EngineHealth,
    private readonly patience: Patience,
    private readonly onLate: (pool: string, serverId: ServerStatus['serverId']) => void,
  ) {}

  /** Of these the servers that nobody has asked yet. */
  idle(pool: string, servers: readonly ServerStatus[]): ServerStatus[] {
    return servers.filter((server) => !this.underWay.has(nameOf(pool, server)));
  }

  /** Whether it answers within the round. Never throws. */
  async answers(pool: string, server: ProbedServer): Promise<boolean> {
    const name = nameOf(pool, server);
    this.underWay.add(name);
    let isLate = false;
    const answer = this.health.answers(server, this.patience.probeMs).then((answered) => {
      this.underWay.delete(name);
      if (answered && isLate) this.onLate(pool, server.serverId);
      return answered;
    });
    let timer: NodeJS.Timeout | undefined;
    const endOfRound = new Promise<false>((resolve) => {
      timer = setTimeout(() => {
        isLate = true;
        resolve(false);
      }, this.patience.roundMs);
    });
    try {
      return await Promise.race([answer, endOfRound]);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Of one epoch: what an earlier start answers says nothing of the next one. */
function nameOf(pool: string, { serverId, epoch, endpoint }: ProbedServer): string {
  return `${pool} ${serverId} ${epoch} ${endpoint}`;
}
