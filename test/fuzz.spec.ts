import { ERROR_CODES, type ErrorCode } from '@broomwagon/contracts';
import { connectNats } from '@broomwagon/messaging';
import { ProtocolCheck, requestRaw, testNatsUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { MessageFuzzer, messageRequests } from './system/message-fuzzer';
import { ServiceBench } from './system/service-bench';
import { usedBytes } from './system/used-bytes';

/** More by hand: FUZZ_MESSAGES=1000000. */
const MESSAGES = Number(
  process.env.FUZZ_MESSAGES ?? (inject('runsFactor') === 1 ? 5_000 : 10_000 * inject('runsFactor')),
);
const SEED = Number(process.env.FUZZ_SEED ?? 1);
const AT_ONCE = 64;
const ANSWER_WITHIN_MS = 20_000;
/** The first part fills caches, compiles and grows pools; memory is measured after it. */
const WARM_UP = 0.4;
/** Bytes that the services, which run in this process, may keep of one message for good. A kept body is some 1,000. */
const KEPT_BYTES = 256;
/** Bytes for code and tables that grow late. */
const SLACK_BYTES = 4_000_000;

/** Checks a body that is JSON: a body that its published schema refuses must be refused. */
function compare(check: ProtocolCheck, subject: string, body: string, reply: unknown): void {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body || '{}');
  } catch {
    return;
  }
  const request = check.sent(subject, parsed);
  if (request) check.replied(request, reply);
}

let bench: ServiceBench;
beforeAll(async () => {
  bench = await ServiceBench.open({ logLevel: 'silent' }, 2);
}, 60_000);
afterAll(() => bench.close());

it(`answers ${MESSAGES} right, wrong and hostile messages with typed errors, and works on afterwards`, async () => {
  await bench.begin();
  const fuzzed = bench.pool;
  const fuzzer = new MessageFuzzer(SEED, messageRequests());
  const connection = await connectNats({ url: testNatsUrl() });
  for (const name of ['worker', 'job', 'round', 'group']) fuzzer.remember(`${name}Id`, `${name}-0`);
  const check = new ProtocolCheck();
  const outcomes = new Map<string, number>();
  const defects: object[] = [];
  let sent = 0;
  let early: number | undefined;
  const client = async (): Promise<void> => {
    while (sent < MESSAGES) {
      const operation = fuzzer.operations[sent++ % fuzzer.operations.length]!;
      if (sent === Math.floor(MESSAGES * WARM_UP)) early = await usedBytes();
      const body = fuzzer.message(operation);
      const subject = `rollout.v1.${fuzzed}.${operation}`;
      const asked = requestRaw(connection.nats, subject, body, { timeoutMs: ANSWER_WITHIN_MS });
      const message = await asked.catch(() => undefined);
      if (message === undefined) {
        // Only the replicas that the message names answer it.
        if (operation === 'service.log-level') continue;
        defects.push({ operation, error: 'no answer', body: body.slice(0, 2_000) });
        continue;
      }
      const reply = message.json<{ error?: { code: ErrorCode; message: string } }>();
      compare(check, subject, body, reply);
      const code = reply.error?.code ?? 'OK';
      outcomes.set(code, (outcomes.get(code) ?? 0) + 1);
      if (reply.error === undefined) fuzzer.learn(reply);
      else if (code === 'INTERNAL' || !Object.hasOwn(ERROR_CODES, code)) {
        defects.push({ operation, error: reply.error, body: body.slice(0, 2_000) });
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
  expect(defects.slice(0, 5)).toEqual([]);
  expect(check.mismatches.slice(0, 5)).toEqual([]);
  // Messages came through validation into the transitions, and named existing things as well as missing ones.
  expect(outcomes.get('OK')).toBeGreaterThan(MESSAGES / 20);
  expect(outcomes.get('VALIDATION_FAILED')).toBeGreaterThan(MESSAGES / 20);
  expect(outcomes.get('MALFORMED_JSON')).toBeGreaterThan(0);
  expect(outcomes.size).toBeGreaterThan(8);
  const kept = (await usedBytes()) - early!;
  expect(kept).toBeLessThan(SLACK_BYTES + KEPT_BYTES * MESSAGES * (1 - WARM_UP));
  await connection.close();
  await bench.engine.close();

  await bench.begin(() => 20, 20);
  await bench.register();
  await bench.startWorker();
  const trainerEpoch = await bench.submit(4);
  const round = { job: bench.job, roundId: 'r1' };
  await expect
    .poll(async () => (await bench.client.call(bench.pool, 'round.status', round)).state, { timeout: 60_000 })
    .toBe('completed');
  expect(trainerEpoch).toBeDefined();
  await bench.end();
}, 600_000);
