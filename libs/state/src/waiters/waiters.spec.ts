import { afterEach, beforeEach, expect, it } from 'vitest';
import { PoolStore } from '../pools/pool.store';
import { openTestStore } from '../routing/routing-store.fixture';

let test: ReturnType<typeof openTestStore>;
beforeEach(() => {
  test = openTestStore({ maxWaiters: 20 });
});
afterEach(() => test.close());

const waiting = (name: string, more: object = {}) => ({
  acquireId: name,
  waitMs: 20_000,
  replyTo: `inbox.${name}`,
  ...more,
});
const inboxes = ({ answers }: { answers: { replyTo: string }[] }) => answers.map(({ replyTo }) => replyTo);

it('grants a freed place once, to the waiter of the highest priority, then of the earliest arrival', async () => {
  await test.server('a', 1);
  const worker = await test.worker('w');
  const holder = await test.acquire(worker);
  for (const [name, priority] of [
    ['low', 1],
    ['first', 5],
    ['second', 5],
    ['high', 9],
  ] as const) {
    expect(await test.acquire(worker, waiting(name, { priority }))).toMatchObject({ parked: true });
  }
  const order: string[] = [];
  for (let held = holder.acquireId; ;) {
    const reply = await test.release(held);
    expect(reply.answers.length).toBeLessThanOrEqual(1);
    const next = reply.answers[0];
    if (!next) break;
    expect(next).toMatchObject({ serverId: 'a', branch: 'waited', inflight: 1 });
    expect(reply.servers.a?.endpoint).toBe('http://a:8000');
    order.push(next.replyTo);
    held = next.acquireId;
  }
  expect(order).toEqual(['inbox.high', 'inbox.first', 'inbox.second', 'inbox.low']);
});

it('grants waiters when a server registers or grows, as far as there is room', async () => {
  const worker = await test.worker('w');
  for (let n = 0; n < 5; n++) await test.acquire(worker, waiting(`q${n}`));
  expect(inboxes(await test.server('a', 2))).toEqual(['inbox.q0', 'inbox.q1']);
  expect(inboxes(await test.server('a', 4))).toEqual(['inbox.q2', 'inbox.q3']);
  expect((await test.pools.status(test.pool)).waiters).toBe(1);
});

it('moves the answer of a repeated waiting acquire to the new inbox, in the old place', async () => {
  const worker = await test.worker('w');
  await test.acquire(worker, waiting('first'));
  await test.acquire(worker, waiting('second'));
  await test.acquire(worker, { ...waiting('first'), replyTo: 'inbox.again' });
  expect(inboxes(await test.server('a', 1))).toEqual(['inbox.again']);
});

it('lets a bound session wait for its own server', async () => {
  await test.server('a', 1);
  const worker = await test.worker('w');
  const turn = await test.acquire(worker, { sessionId: 's' });
  expect(await test.acquire(worker, waiting('next turn', { sessionId: 's' }))).toMatchObject({ parked: true });
  // Room on another server does not end its wait.
  expect(inboxes(await test.server('b', 5))).toEqual([]);
  const reply = await test.release(turn.acquireId);
  expect(reply.answers).toMatchObject([{ replyTo: 'inbox.next turn', serverId: 'a', branch: 'waited' }]);
});

it('moves the waiters of a removed server to a server with room', async () => {
  await test.server('a', 1);
  const worker = await test.worker('w');
  await test.acquire(worker, { sessionId: 's' });
  await test.acquire(worker, waiting('next', { sessionId: 's' }));
  await test.server('b', 5);
  await test.servers.remove(test.pool, { serverId: 'a' });
  const page = await test.leases.sweep(test.pool);
  expect(page.answers).toMatchObject([{ replyTo: 'inbox.next', serverId: 'b' }]);
});

it('keeps waiters of a weight version for servers of that version', async () => {
  const worker = await test.worker('w');
  await test.acquire(worker, waiting('new weights', { weightVersion: 2 }));
  await test.acquire(worker, waiting('any weights'));
  expect(inboxes(await test.server('old', 5, { weightVersion: 1 }))).toEqual(['inbox.any weights']);
  expect(inboxes(await test.server('new', 5, { weightVersion: 2 }))).toEqual(['inbox.new weights']);
});

it('lets a session that waits for its full server leave it when the margin breaks meanwhile', async () => {
  const worker = await test.worker('w');
  await new PoolStore(test.runner).configure(test.pool, { affinityBreakMargin: 1, affinityBreakMaxContextTokens: 900 });
  await test.server('full', 3);
  for (let n = 0; n < 3; n++) await test.acquire(worker, { sessionId: 's' });
  await test.server('busy', 3);
  const busy = [];
  for (let n = 0; n < 2; n++) busy.push(await test.acquire(worker));
  // The other server has two leases, which is within the margin.
  await test.acquire(worker, waiting('long', { sessionId: 's', contextTokens: 1_000 }));
  await test.acquire(worker, waiting('short', { sessionId: 's' }));
  expect((await test.waiters.grant(test.pool)).answers).toEqual([]);
  const { answers } = await test.release(busy[0]!.acquireId);
  expect(answers).toMatchObject([{ acquireId: 'short', serverId: 'busy', branch: 'waited', via: 'sticky-broken' }]);
});

it('finds room for a waiter on any server, though no event of the server reports it', async () => {
  const worker = await test.worker('w');
  await test.server('newest', 1, { weightVersion: 3 });
  await test.acquire(worker, { weightVersion: 3 });
  await test.server('middle', 5, { weightVersion: 1 });
  await test.acquire(worker, { weightVersion: 1 });
  for (let n = 0; n < 100; n++) await test.server(`idle-${n}`);
  await test.acquire(worker, waiting('fresh weights', { maxWeightLag: 0 }));
  await test.servers.remove(test.pool, { serverId: 'newest' });
  const answers = [];
  for (let call = 0; call < 2; call++) answers.push(...(await test.waiters.grant(test.pool)).answers);
  expect(answers).toMatchObject([{ acquireId: 'fresh weights', serverId: 'middle' }]);
});

it('answers a waiter whose time is over once: WAIT_TIMEOUT, or NO_SERVER_AVAILABLE when there is none', async () => {
  const worker = await test.worker('w');
  const expired = async () => {
    let reply = await test.waiters.expire(test.pool);
    await expect
      .poll(async () => {
        if (reply.answers.length === 0) reply = await test.waiters.expire(test.pool);
        return reply.answers.length;
      })
      .toBe(1);
    return reply.answers[0];
  };
  await test.acquire(worker, waiting('x', { waitMs: 30 }));
  expect(await expired()).toMatchObject({ replyTo: 'inbox.x', error: 'NO_SERVER_AVAILABLE', reason: 'no-servers' });
  await test.server('a', 1);
  await test.acquire(worker);
  await test.acquire(worker, waiting('y', { waitMs: 30 }));
  expect(await expired()).toMatchObject({ replyTo: 'inbox.y', error: 'WAIT_TIMEOUT', reason: 'servers-full' });
  expect(await test.waiters.expire(test.pool)).toMatchObject({ answers: [], waiting: 0 });
});

it('answers RELEASED to a released waiter, and FENCED to a waiter of an expired worker epoch', async () => {
  const worker = await test.worker('w');
  const other = await test.worker('other');
  await test.acquire(worker, waiting('given up'));
  await test.acquire(worker, waiting('fenced'));
  await test.acquire(other, waiting('granted'));
  expect((await test.release('given up')).answers).toEqual([
    { acquireId: 'given up', replyTo: 'inbox.given up', error: 'RELEASED' },
  ]);
  await test.workers.deregister(test.pool, { workerId: 'w', workerEpoch: worker.workerEpoch });
  expect((await test.server('a', 5)).answers).toMatchObject([
    { replyTo: 'inbox.fenced', error: 'FENCED' },
    { replyTo: 'inbox.granted', serverId: 'a' },
  ]);
});

it('bounds the queue, and parks no acquire that cannot be answered', async () => {
  const worker = await test.worker('w');
  for (let n = 0; n < 20; n++) await test.acquire(worker, waiting(`q${n}`));
  expect(await test.acquire(worker, waiting('one too many'))).toMatchObject({ error: 'QUEUE_FULL' });
  expect(await test.acquire(worker, { waitMs: 1_000 })).toMatchObject({ error: 'NO_SERVER_AVAILABLE' });
});

it('grants much room in pages, to each waiter once', async () => {
  await test.close();
  test = openTestStore();
  const worker = await test.worker('w');
  for (let page = 0; page < 3; page++) {
    const items = Array.from({ length: 100 }, (_, n) => waiting(`q${page * 100 + n}`, { requestId: 'r', ...worker }));
    await test.leases.acquire(test.pool, items as never);
  }
  let reply: { answers: { replyTo: string }[]; more: boolean } = await test.server('a', 1_000);
  const granted = inboxes(reply);
  expect(reply.more).toBe(true);
  while (reply.more) {
    reply = await test.waiters.grant(test.pool);
    granted.push(...inboxes(reply));
  }
  expect(new Set(granted).size).toBe(300);
  expect(granted.length).toBe(300);
});
