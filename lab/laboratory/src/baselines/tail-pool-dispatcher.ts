import type { Claim, Dispatcher } from '../rollout/dispatcher';
import type { Placement } from '../rollout/placement';

/**
 * TailSieve's two pools: groups of the long-tail queue run alone on the last servers, where a small batch makes each
 * step short; all other groups run on the other servers. Within a pool the least loaded server is chosen.
 */
export class TailPoolDispatcher implements Dispatcher {
  constructor(
    private readonly placement: Placement,
    private readonly claim: Claim,
    private readonly tailServers: number,
  ) {}

  pump(): void {
    for (const sample of this.claim(Infinity)) {
      const { engines } = this.placement.fleet;
      const bulk = engines.length - this.tailServers;
      const [from, to] = sample.request.group.taken ? [bulk, engines.length] : [0, bulk];
      let best = from;
      for (let server = from + 1; server < to; server++) {
        const load = engines[server]!.runningCount + engines[server]!.waitingCount;
        if (load < engines[best]!.runningCount + engines[best]!.waitingCount) best = server;
      }
      this.placement.start(sample, best);
    }
  }
}
