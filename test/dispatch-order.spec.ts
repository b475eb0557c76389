import { DISPATCH_ORDERS, type DispatchOrder, type Epoch, type TailPolicy } from '@broomwagon/contracts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ServiceBench } from './system/service-bench';

const SAMPLES = 2;
const MAX_TOKENS = 8_000;
const SPEED = 400;
/** Tokens of each response, by the number of its group. */
const TOKENS = [300, 900, 600, 1_200, 1_500];
/** Groups that the prompt memory knows. */
const KNOWN = [0, 1, 3];
const GROUPS_PER_STEP = 3;
/** Groups of the first round. The last one is cut. */
const GROUPS = [0, 1, 2, 3];
const LATER = 4;
/** The group of each request that the engine gets. */
const EXPECTED: Record<DispatchOrder, number[]> = {
  arrival: [0, 0, 1, 1, 2, 2, 3, 3],
  // A response of unknown length may be as long as its budget.
  'longest-first': [2, 2, 3, 3, 1, 1, 0, 0],
  // Group 2 is as long as its probe from there on.
  'probe-first': [2, 3, 3, 1, 1, 2, 0, 0],
};
const OVER_PROVISION = GROUPS.length / GROUPS_PER_STEP;
/** Policies with the concurrency of the worker. Requests run one at a time, so they have an order after probes too. */
const POLICIES: [TailPolicy, concurrency: number][] = [
  [{ name: 'drip', overProvision: OVER_PROVISION }, 1],
  [{ name: 'fixed-concurrency', overProvision: OVER_PROVISION, concurrency: 1 }, 64],
];
const CASES = POLICIES.flatMap(([policy, concurrency]) =>
  DISPATCH_ORDERS.map((dispatchOrder) => ({ name: policy.name, dispatchOrder, policy, concurrency })),
);

describe('an engine gets the requests of a round in its order', () => {
  let bench: ServiceBench;
  beforeAll(async () => {
    bench = await ServiceBench.open();
  });
  afterAll(() => bench.close());
  /** Number of the group, by the key that the engine has for its prompt. */
  const groups = new Map<string, number>();
  beforeEach(() =>
    bench.begin(({ promptKey, promptText }) => {
      const number = Number(promptText);
      groups.set(promptKey, number);
      return TOKENS[number]!;
    }, SPEED),
  );
  afterEach(() => bench.end());

  /** Runs a round of these groups and the groups that it takes from the queue. Returns the epoch of the trainer. */
  async function runRound(policy: TailPolicy, groups: readonly number[], earlier?: Epoch): Promise<Epoch> {
    const { client, pool, job } = bench;
    const wanted = { job, groupsPerStep: GROUPS_PER_STEP, remainingGroups: groups.length, policy };
    const { kind, ...plan } = await client.call(pool, 'round.next', wanted);
    expect(plan.newGroups).toBe(groups.length);
    const round = { job, roundId: `r${plan.step}` };
    const opening = { ...round, ...plan, kind: kind as 'short', policy, trainerEpoch: earlier };
    const { trainerEpoch } = await client.callWithRetry(pool, 'round.open', opening, { deadlineMs: 10_000 });
    const submitted = groups.map((number) => ({
      groupId: `g${number}`,
      promptId: `p${number}`,
      samples: SAMPLES,
      maxTokens: MAX_TOKENS,
      prompt: { text: `${number}` },
    }));
    await client.call(pool, 'round.submit', { ...round, trainerEpoch, groups: submitted });
    if (earlier === undefined) await bench.register();
    const state = async () => (await client.call(pool, 'round.status', round)).state;
    await expect.poll(state, { timeout: 20_000 }).toBe('completed');
    const { cursor } = await client.call(pool, 'round.results', round);
    await client.call(pool, 'round.close', { ...round, trainerEpoch, cursor });
    return trainerEpoch;
  }

  it.each(CASES)('$name, $dispatchOrder', async ({ dispatchOrder, concurrency, ...rest }) => {
    const policy = { ...rest.policy, dispatchOrder };
    const prompts = KNOWN.map((number) => ({ promptId: `p${number}`, lengths: [TOKENS[number]!, TOKENS[number]!] }));
    await bench.client.call(bench.pool, 'prompt.remember', { prompts });
    await bench.startWorker({ concurrency });
    const trainerEpoch = await runRound(policy, GROUPS);
    // A group that was started in an earlier round goes ahead of a probe.
    await runRound(policy, [LATER], trainerEpoch);
    const { table } = await bench.engineState();
    // In the table of the engine, the request that ended last comes first.
    const inTurn = table.toReversed().map(({ promptKey }) => groups.get(promptKey));
    expect(inTurn).toEqual([...EXPECTED[dispatchOrder], LATER, LATER]);
  });
});
