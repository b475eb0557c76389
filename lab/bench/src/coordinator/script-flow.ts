import { roundTerms } from '@broomwagon/policies';
import { RequestStore, RoundStore, FunctionRunner, type AttemptFence, type RedisClient } from '@broomwagon/state';
import { readToEnd } from '@broomwagon/testing';
import type { BenchWorker } from '../generator/jobs';
import { KEY_PREFIX } from '../stage';
import { WINDOW, type RoundShape } from './round-flow';

const PAGE = 128;

/** Claims and completions by FCALL alone, as many at once as over NATS: a lower bound from the cost of Redis. */
export class ScriptFlow {
  private readonly rounds: RoundStore;
  private readonly requests: RequestStore;

  constructor(
    redis: RedisClient,
    private readonly pool: string,
    private readonly job: string,
    private readonly worker: BenchWorker,
    private readonly shape: RoundShape,
  ) {
    const runner = new FunctionRunner(redis, KEY_PREFIX);
    this.rounds = new RoundStore(runner);
    this.requests = new RequestStore(runner);
  }

  async run(): Promise<{ claimPerSecond: number; completePerSecond: number }> {
    const { job, pool, worker } = this;
    const { neededGroups, samples } = this.shape;
    const policy = { name: 'resume', overProvision: 1 } as const;
    const { trainerEpoch } = await this.rounds.open(pool, {
      ...roundTerms(policy, { kind: 'short', neededGroups, takeGroups: 0 }, {}),
      job,
      roundId: 'round',
      planId: 'plan',
      step: 1,
      kind: 'short',
      neededGroups,
      takeGroups: 0,
      newGroups: neededGroups,
      policy,
      weightVersion: 0,
      orphanAfterMs: 86_400_000,
    });
    for (let first = 0; first < neededGroups; first += PAGE) {
      const groups = Array.from({ length: Math.min(PAGE, neededGroups - first) }, (_, offset) => ({
        groupId: `group-${first + offset}`,
        digest: 'digest',
        samples,
        maxTokens: 1_000,
        promptRef: `redis~${pool}~${job}~prompt~1`,
        sampling: '{}',
      }));
      await this.rounds.submit(pool, { job, roundId: 'round', trainerEpoch }, groups);
    }
    const fences: AttemptFence[] = [];
    const claimPerSecond = await measureRate(neededGroups * samples, async (index) => {
      const { claims } = await this.requests.claim(pool, { claimId: `${job}-${index}`, ...worker, max: 1 });
      const { requestId, attempt } = claims[0]!;
      fences.push({ requestId, attempt, ...worker });
    });
    const completePerSecond = await measureRate(fences.length, async (index) => {
      const fence = fences[index]!;
      const ref = `redis~${pool}~${job}~tokens~1`;
      const segment = {
        serverId: 's',
        serverEpoch: 'e1',
        weightVersion: 0,
        tokenCount: 100,
        ref,
        attempt: fence.attempt,
      };
      const end = { segment: JSON.stringify(segment), tokens: 100, finishReason: 'stop' as const };
      await this.requests.complete(pool, { ...fence, ...end });
    });
    const round = { job, roundId: 'round', trainerEpoch };
    const { cursor } = await readToEnd((from) => this.rounds.results(pool, { ...round, cursor: from, limit: 128 }));
    await this.rounds.close(pool, { ...round, cursor });
    for await (const _ of this.rounds.whileMore('fold', pool, { job, roundId: 'round' }));
    return { claimPerSecond, completePerSecond };
  }
}

/** @returns calls per second, with `WINDOW` calls at once */
async function measureRate(count: number, work: (index: number) => Promise<void>): Promise<number> {
  const startedAtMs = performance.now();
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: WINDOW }, lane));
  return count / ((performance.now() - startedAtMs) / 1_000);
}
