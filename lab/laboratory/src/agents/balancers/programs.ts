import { ADMISSION_RULES, SessionAdmission, type AdmissionRules } from '@broomwagon/models';
import { buildOutlook, type SessionCounts } from '@broomwagon/policies';
import type { Balancer, CreateBalancer, FleetView, TurnRequest } from './balancer';

/** Every load-balancer computes the outlook and grants waiters as often. */
const UPKEEP_SECONDS = 5;

export interface ProgramsOptions {
  rules?: Partial<AdmissionRules>;
  /** Whether the context of a session that ends or pauses is dropped from the cache, as by `/close_session`. */
  closesSessions?: boolean;
}

/** Broomwagon with `sessionAdmission: kv`: the model that is checked against the scripts. */
export function createPrograms(options: ProgramsOptions = {}): CreateBalancer {
  return (fleet) => new Programs(fleet, options);
}

class Programs implements Balancer {
  private readonly admission: SessionAdmission;
  private readonly waiting = new Map<string, TurnRequest>();
  /** Context of each session after its last call. */
  private readonly contexts = new Map<string, number>();

  constructor(
    private readonly fleet: FleetView,
    private readonly options: ProgramsOptions,
  ) {
    this.admission = new SessionAdmission({ ...ADMISSION_RULES, ...options.rules });
    // Ids sort like the numbers of servers, since the id is the last tie-break of a choice.
    for (let server = 0; server < fleet.servers; server++) {
      this.admission.addServer(String(server).padStart(6, '0'), fleet.kvTokens);
    }
    if (options.closesSessions) {
      this.admission.onPause = ({ id, serverId }) => fleet.closeSession(Number(serverId), id);
    }
    fleet.every(UPKEEP_SECONDS, () => this.keepUp());
  }

  request(turn: TurnRequest): void {
    const answer = this.admission.acquire(
      {
        acquireId: turn.id,
        sessionId: turn.sessionId,
        groupId: turn.groupId,
        parentSessionId: turn.parentId,
        contextTokens: turn.contextTokens,
      },
      this.fleet.nowMs(),
    );
    if ('error' in answer) throw new Error(`turn ${turn.id} was refused: ${answer.error}`);
    if ('waits' in answer) this.waiting.set(turn.id, turn);
    else this.start(turn, answer.serverId, answer.branch === 'sticky-hit');
  }

  ended(turn: TurnRequest, _server: number, madeTokens: number): void {
    this.contexts.set(turn.sessionId, turn.contextTokens + madeTokens);
    this.startGranted(this.admission.release(turn.id, madeTokens, this.fleet.nowMs()));
  }

  sessionOver(sessionId: string): void {
    const session = this.admission.residency.sessions.get(sessionId);
    this.contexts.delete(sessionId);
    if (session && this.options.closesSessions) this.fleet.closeSession(Number(session.serverId), sessionId);
    this.startGranted(this.admission.finish(sessionId, this.fleet.nowMs()));
  }

  private keepUp(): void {
    this.admission.setOutlook(buildOutlook(readCounts(this.admission.residency.counts)));
    this.startGranted(this.admission.grantWaiters(this.fleet.nowMs()));
  }

  private startGranted(granted: ReturnType<SessionAdmission['grantWaiters']>): void {
    for (const { acquireId, serverId, branch } of granted) {
      const turn = this.waiting.get(acquireId)!;
      this.waiting.delete(acquireId);
      this.start(turn, serverId, branch === 'sticky-hit');
    }
  }

  /** A resident session is expected to find its context, any other one what its family has on the server. */
  private start(turn: TurnRequest, serverId: string, isResident: boolean): void {
    const { residency } = this.admission;
    const context = isResident ? this.contexts.get(turn.sessionId) : undefined;
    const others = (residency.families.get(turn.groupId)?.sessions.get(serverId) ?? 0) > 1;
    this.fleet.start(turn, Number(serverId), context ?? (others ? turn.prefixTokens : 0));
  }
}

function readCounts(counts: ReadonlyMap<string, number>): SessionCounts {
  const read: Record<'reached' | 'ended' | 'gap', Record<number, number>> = { reached: {}, ended: {}, gap: {} };
  for (const [field, count] of counts) {
    const [, name, bin] = /^(reached|ended|gap)(\d+)$/.exec(field)!;
    read[name as keyof typeof read][Number(bin)] = count;
  }
  return { reached: read.reached, ended: read.ended, gaps: read.gap };
}
