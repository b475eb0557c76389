import { type Balancer, findLeast, type FleetView, type TurnRequest } from './balancer';

/** Defaults of SMG and sglang-router. */
const CACHE_THRESHOLD = 0.3;
const BALANCE_ABS_THRESHOLD = 64;
const BALANCE_REL_THRESHOLD = 1.5;

/**
 * `cache_aware` of sglang-router and SMG: while the numbers of requests differ by more than both thresholds, the server
 * with the fewest; otherwise the server to which the longest prefix of the prompt was sent before, if that is more than
 * 30 % of the prompt; otherwise the server with the smallest tree. The trees have prompts only, and are never told of
 * evictions; they do not reach their bound in a round.
 */
export class CacheAware implements Balancer {
  private readonly running: number[];
  private readonly treeTokens: number[];
  /** By session: last prompt that each server was sent. */
  private readonly prompts = new Map<string, Map<number, number>>();
  /** By group: servers that were sent its prefix. */
  private readonly prefixes = new Map<string, Set<number>>();

  constructor(private readonly fleet: FleetView) {
    this.running = new Array<number>(fleet.servers).fill(0);
    this.treeTokens = new Array<number>(fleet.servers).fill(0);
  }

  request(turn: TurnRequest): void {
    const server = this.choose(turn);
    this.remember(turn, server);
    this.running[server]! += 1;
    this.fleet.start(turn, server);
  }

  ended(_turn: TurnRequest, server: number): void {
    this.running[server]! -= 1;
  }

  sessionOver(): void {}

  private choose(turn: TurnRequest): number {
    const [most, least] = [Math.max(...this.running), Math.min(...this.running)];
    if (most - least > BALANCE_ABS_THRESHOLD && most > BALANCE_REL_THRESHOLD * least) return findLeast(this.running);
    let [best, matched] = [-1, 0];
    const sent = [...(this.prefixes.get(turn.groupId) ?? []), ...(this.prompts.get(turn.sessionId)?.keys() ?? [])];
    for (const server of sent) {
      const tokens = this.match(turn, server);
      if (tokens > matched) [best, matched] = [server, tokens];
    }
    return matched > CACHE_THRESHOLD * turn.contextTokens ? best : findLeast(this.treeTokens);
  }

  private match({ sessionId, groupId, prefixTokens }: TurnRequest, server: number): number {
    const own = this.prompts.get(sessionId)?.get(server);
    return own ?? (this.prefixes.get(groupId)?.has(server) ? prefixTokens : 0);
  }

  private remember(turn: TurnRequest, server: number): void {
    this.treeTokens[server]! += turn.contextTokens - this.match(turn, server);
    const prompts = this.prompts.get(turn.sessionId) ?? new Map<number, number>();
    this.prompts.set(turn.sessionId, prompts.set(server, turn.contextTokens));
    const prefixes = this.prefixes.get(turn.groupId) ?? new Set<number>();
    this.prefixes.set(turn.groupId, prefixes.add(server));
  }
}
