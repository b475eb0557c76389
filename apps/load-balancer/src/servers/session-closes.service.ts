import { Injectable, Logger } from '@nestjs/common';
import { decodeComposedId, isBroomwagonError, type PoolName } from '@broomwagon/contracts';
import { InEachPool } from '@broomwagon/platform';
import { type SessionClose, SessionStore } from '@broomwagon/state';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { EngineHealth } from './engine-health';

const INTERVAL_MS = 1_000;
/** Maximum time of one call, milliseconds. */
const TIMEOUT_MS = 3_000;

/**
 * Notifies engines of sessions that have ended (`/close_session` of SGLang), so that their KV cache is given up before
 * the cache of live sessions. A call that fails is repeated after 30 s, by any replica.
 */
@Injectable()
export class SessionClosesService {
  private readonly logger = new Logger(SessionClosesService.name);

  constructor(
    private readonly sessions: SessionStore,
    private readonly engines: EngineHealth,
    private readonly metrics: LoadBalancerMetrics,
  ) {}

  @InEachPool('close-sessions', INTERVAL_MS)
  async closeEnded(pool: PoolName): Promise<void> {
    let notified: string[] = [];
    for (;;) {
      const { closes } = await this.sessions.close(pool, { notified });
      if (closes.length === 0) return;
      const answers = await Promise.all(closes.map((close) => this.notify(pool, close)));
      notified = closes.flatMap(({ entry }, index) => (answers[index] ? entry : []));
    }
  }

  /** @returns whether no further call is needed */
  private async notify(pool: PoolName, { sessionId, serverId, endpoint, dialect }: SessionClose): Promise<boolean> {
    try {
      await this.engines.getAdapter({ pool, endpoint, dialect }).closeSession(decodeComposedId(sessionId), TIMEOUT_MS);
      this.metrics.sessionCloses.inc({ pool, outcome: 'closed' });
      return true;
    } catch (error) {
      this.metrics.sessionCloses.inc({ pool, outcome: 'failed' });
      this.logger.debug(
        { err: error, pool, serverId, sessionId },
        'The engine was not notified of the end of a session',
      );
      return isBroomwagonError(error, 'ENGINE_REJECTED');
    }
  }
}
