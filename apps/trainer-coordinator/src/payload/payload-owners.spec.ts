import type { GroupSubmission, TailPolicy } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CoordinatorFixture } from '../coordinator.fixture';

const WAIT: TailPolicy = { name: 'wait', overProvision: 1 };

describe('owners of payloads', () => {
  let fixture: CoordinatorFixture;
  let call: CoordinatorFixture['client']['call'];

  beforeAll(async () => {
    fixture = await CoordinatorFixture.start(1);
    call = (pool, operation, body, options) => fixture.client.call(pool, operation, body, options);
  });
  afterAll(() => fixture.stop());
  beforeEach(() => fixture.freshPool());

  const read = async (pool: string, ref: string) =>
    Buffer.from((await call(pool, 'payload.get', { ref })).data, 'base64').toString();

  /** Opens a round of one group with this prompt in the pool of the fixture, and claims its request. */
  async function begin(job: string, group: Partial<GroupSubmission>) {
    const plan = { groupsPerStep: 1, remainingGroups: 1, policy: WAIT };
    const { roundId, trainerEpoch } = await fixture.open(job, plan);
    const round = { job, roundId, trainerEpoch };
    const groups = [{ groupId: 'prompt-7', samples: 1, maxTokens: 10, ...group }];
    await call(fixture.pool, 'round.submit', { ...round, groups });
    const worker = await fixture.worker(`worker-of-${fixture.pool}`);
    const [claim] = await worker.claim(1);
    const payload = { job, owner: claim!.requestId, name: '1', chunkIndex: 0, chunkCount: 1 };
    const tokens = { ...payload, data: Buffer.from(`tokens of ${fixture.pool}`).toString('base64') };
    const { ref } = await call(fixture.pool, 'payload.put', tokens);
    return { pool: fixture.pool, round, worker, claim: claim!, ref: ref! };
  }

  it('keeps jobs and groups of the same name in two pools apart, until the round of one is closed and after', async () => {
    const actor = await begin('run42', { prompt: { text: 'for the actor' } });
    fixture.freshPool();
    const reward = await begin('run42', { prompt: { text: 'for the reward model' } });
    expect(reward.claim.requestId).toBe(actor.claim.requestId);
    expect(JSON.parse(await read(actor.pool, actor.claim.promptRef))).toEqual({ text: 'for the actor' });
    expect(JSON.parse(await read(reward.pool, reward.claim.promptRef))).toEqual({ text: 'for the reward model' });
    expect(await read(actor.pool, actor.ref)).toBe(`tokens of ${actor.pool}`);

    await reward.worker.complete(reward.claim);
    await fixture.close(reward.round, reward.pool);
    await fixture.swept();
    expect(await read(actor.pool, actor.ref)).toBe(`tokens of ${actor.pool}`);
    expect(await read(actor.pool, actor.claim.promptRef)).toContain('for the actor');
  });

  it('refuses a reference of another pool', async () => {
    const actor = await begin('run42', { prompt: { text: 'for the actor' } });
    fixture.freshPool();
    const foreign = { code: 'PAYLOAD_FOREIGN', retryable: false, field: 'ref' };
    for (const operation of ['payload.get', 'payload.stat'] as const) {
      await expect(call(fixture.pool, operation, { ref: actor.ref })).rejects.toMatchObject(foreign);
    }
    await expect(begin('run42', { promptRef: actor.claim.promptRef })).rejects.toMatchObject({
      code: 'PAYLOAD_FOREIGN',
      field: 'groups.0.promptRef',
    });
  });
});
