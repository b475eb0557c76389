import type { TailPolicy } from '@broomwagon/contracts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CoordinatorFixture, groups } from '../coordinator.fixture';

let fixture: CoordinatorFixture;
beforeAll(async () => {
  fixture = await CoordinatorFixture.start(1);
});
afterAll(() => fixture.stop());

it('trains groups whose domains are named as the fields of every object', async () => {
  await fixture.freshPool();
  // No domain begins with an underscore.
  const domains = Object.getOwnPropertyNames(Object.prototype).filter((name) => !name.startsWith('_'));
  const domainQuotas = Object.fromEntries(domains.map((domain) => [domain, 1]));
  const policy: TailPolicy = { name: 'resume', overProvision: 1, overProvisionMode: 'adaptive', domainQuotas };
  const job = 'hostile-domains';
  const remainingByDomain = domainQuotas;
  const data = { policy, groupsPerStep: domains.length, remainingGroups: domains.length, remainingByDomain };
  const { roundId, trainerEpoch } = await fixture.open(job, data);
  const round = { job, roundId, trainerEpoch };
  const named = groups(domains.length, 0, 1).map((group, index) => ({ ...group, domain: domains[index]! }));
  await fixture.call('round.submit', { ...round, groups: named });
  const worker = await fixture.worker('worker');
  const claims = await worker.claim(domains.length);
  expect(claims).toHaveLength(domains.length);
  for (const claim of claims) await worker.complete(claim);
  const { groups: accepted } = await fixture.call('round.results', { ...round, limit: domains.length });
  expect(accepted.map(({ domain }) => domain).toSorted()).toEqual(domains.toSorted());
  await fixture.close(round);
  const next = await fixture.call('round.next', { job, ...data, trainerEpoch });
  expect(new Map(Object.entries(next.newByDomain!))).toEqual(new Map(Object.entries(remainingByDomain)));
});
