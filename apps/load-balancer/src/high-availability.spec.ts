import { buildSubject } from '@broomwagon/contracts';
import { isOfForeignStream } from '@broomwagon/testing';
import * as fc from 'fast-check';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { setFailpoints } from '../../../libs/platform/src/failpoint';
import { openLoadBalancers, type LoadBalancers, type TestWorker } from './load-balancer.fixture';

let lb: LoadBalancers;
beforeAll(async () => {
  lb = await openLoadBalancers(2);
});
afterAll(() => lb.close());
beforeEach(() => lb.nextPool());
afterEach(() => setFailpoints(''));

/** A client that sends each message with an inbox of its own, and records the answers of each inbox. */
class Inboxes {
  readonly answers = new Map<string, Record<string, unknown>[]>();
  private readonly prefix = `_INBOX.ha${Math.floor(Math.random() * 1e9)}`;
  private sent = 0;

  constructor() {
    lb.client.messaging.connection.nats.subscribe(`${this.prefix}.>`, {
      callback: (_, message) => {
        if (isOfForeignStream(message)) return;
        const answer = JSON.parse(message.string()) as Record<string, unknown>;
        this.answers.set(message.subject, [...(this.answers.get(message.subject) ?? []), answer]);
      },
    });
  }

  send(operation: Parameters<typeof buildSubject>[1], body: object): string {
    const inbox = `${this.prefix}.${this.sent++}`;
    lb.client.messaging.connection.nats.publish(buildSubject(lb.pool, operation), JSON.stringify(body), {
      reply: inbox,
    });
    return inbox;
  }
}

/** One step of a client whose messages are lost and repeated. */
const step = fc.record({
  worker: fc.nat(2),
  acquire: fc.nat(40),
  kind: fc.constantFrom('acquire', 'acquire', 'acquire', 'wait', 'wait', 'release', 'release', 'cancel', 'many'),
  copies: fc.constantFrom(1, 1, 1, 2, 3),
  session: fc.option(fc.nat(5), { nil: undefined }),
});

describe('two replicas, with lost and repeated messages', () => {
  it('balance their counts at the end, leak nothing, and answer each parked call once', async () => {
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 80, maxLength: 200 }), fc.nat(3), async (steps, lost) => {
        const names = [0, 1, 2].map((n) => `w${run}-${n}`);
        run++;
        for (const id of ['a', 'b']) await lb.server(id, 5);
        const workers: TestWorker[] = [];
        for (const name of names) workers.push(await lb.worker(name));
        // Replies are lost after the script ran: the caller gets an error and may repeat the call.
        setFailpoints(
          `load-balancer.acquire.before-reply=throw@${3 + lost},load-balancer.release.before-reply=throw@2`,
        );
        const inboxes = new Inboxes();
        /** All calls by acquireId. A repeat replaces the parked call, and gets its answer. */
        const calls = new Map<string, string[]>();
        const others: string[] = [];
        for (const { worker, acquire, kind, copies, session } of steps) {
          const by = workers[worker]!;
          const acquireId = `${run}-${worker}-${acquire}`;
          const sessionId = session === undefined ? undefined : `${run}-${session}`;
          const item = { acquireId, requestId: 'job/g/0', sessionId };
          const note = (inbox: string) => calls.set(acquireId, [...(calls.get(acquireId) ?? []), inbox]);
          for (let copy = 0; copy < copies; copy++) {
            if (kind === 'acquire') note(inboxes.send('lb.acquire', { ...item, ...by }));
            if (kind === 'wait') note(inboxes.send('lb.acquire', { ...item, ...by, waitMs: 1_500 }));
            if (kind === 'release') others.push(inboxes.send('lb.release', { acquireId, outcome: 'finished' }));
            if (kind === 'cancel') others.push(inboxes.send('lb.cancel', { ...by, acquireId }));
            if (kind === 'many') {
              const acquires = [{ ...item, acquireId: `${acquireId}-m` }];
              others.push(inboxes.send('lb.acquire-many', { ...by, acquires }));
            }
          }
        }
        const isAnswered = (inbox: string) => inboxes.answers.has(inbox);
        const unanswered = () => [
          ...others.filter((inbox) => !isAnswered(inbox)),
          ...[...calls].filter(([, own]) => !own.some(isAnswered)).map(([acquireId]) => acquireId),
        ];
        await expect.poll(unanswered).toEqual([]);
        await expect.poll(async () => (await lb.status()).waiters).toBe(0);
        for (const { inflight, maxInflight } of (await lb.status()).perServer) {
          expect(inflight).toBeLessThanOrEqual(maxInflight);
        }
        const report = await lb.audit();
        expect(report.findings).toEqual([]);
        expect(report.counts.leases).toBe(report.counts.serverLoads);
        expect(report.counts.leases).toBe(report.counts.workerLoads);
        // A caller whose reply is lost gets INTERNAL. An acquire that was parked before may still get its grant, too.
        for (const [inbox, answers] of inboxes.answers) {
          const kept = answers.filter(({ error }) => (error as { code?: string } | undefined)?.code !== 'INTERNAL');
          expect(kept.length, inbox).toBeLessThanOrEqual(1);
        }
        // One worker deregisters and two register again, which fences their old epochs: the leases of all three are
        // returned.
        await lb.call('worker.deregister', workers[0]!);
        await lb.worker(names[1]);
        await lb.worker(names[2]);
        await expect.poll(async () => (await lb.status()).leases).toBe(0);
        await expect(lb.acquire(workers[1]!)).rejects.toMatchObject({ code: 'FENCED' });
        setFailpoints('');
      }),
      { numRuns: 6 * inject('runsFactor'), endOnFailure: true },
    );
    expect((await lb.audit()).findings).toEqual([]);
  });

  it('keep serving when one of them stops in the middle of a burst, and another one joins', async () => {
    for (const id of ['a', 'b', 'c']) await lb.server(id, 4);
    const w = await lb.worker();
    let joined: Awaited<ReturnType<typeof lb.start>> | undefined;
    let done = 0;
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, async (_, n) => {
        const lease = await lb.acquire(w, { waitMs: 25_000 });
        const { released } = await lb.release(lease.leaseId);
        done++;
        if (n === 60) {
          await lb.replicas.pop()!.close();
          joined = await lb.start();
          lb.replicas.push(joined);
        }
        return { leaseId: lease.leaseId, released };
      }),
    );
    expect(done).toBe(200);
    expect(new Set(outcomes.map(({ leaseId }) => leaseId)).size).toBe(200);
    expect(outcomes.every(({ released }) => released)).toBe(true);
    expect(await lb.status()).toMatchObject({ leases: 0, waiters: 0 });
    expect((await lb.audit()).findings).toEqual([]);
  });
});
