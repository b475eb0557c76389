import type { EngineDialect } from '@broomwagon/contracts';
import * as fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import { inEngine, selectZoo, fetchState } from '../../../../lab/engine-simulator/src/test-engine';
import { findSampleFaults } from '../../../../lab/engine-simulator/src/zoo/sample-faults';
import { ZOO } from '../../../../lab/engine-simulator/src/zoo/zoo';
import { decode } from '../../../../lab/engine-simulator/src/zoo/zoo-run';
import { canNotStop, FAILING, mayLackLogprobs, STOP_ENTRIES } from '../../../../lab/engine-simulator/src/zoo/zoo-sets';
import { useGateway } from '../../../../test/system/gateway-bench';
import { ZOO_DOORS, readReply, type ZooReply } from '../../../../test/system/zoo-doors';

const TOKENS = 24;
/** `ZOO_RUNS=10000 TEST_SEED=7 npm run test:one -- apps/gateway/src/dialects/zoo.spec.ts` makes 10,000 runs for each dialect. */
const RUNS = Number(process.env.ZOO_RUNS ?? (inject('runsFactor') === 1 ? 6 : 75));
/** An engine that hangs is the subject of apps/gateway/src/http/silence.spec.ts: its deadline would be the time of each run. */
const ENTRIES = ZOO.filter(
  ({ server, form, name, isAlone }) =>
    server?.restart === undefined && form === undefined && name !== 'hung-healthy' && !isAlone,
);
/** Entries of one engine: the response ends when each engine has answered in another dialect. */
const WRONG = new Set(ZOO.filter(({ failure }) => failure === 'ENGINE_PROTOCOL').map(({ name }) => name));
const ABORTING = new Set(['done-without-reason', 'sglang-waiting-abort']);

describe.each<[EngineDialect, string?]>([
  ['vllm'],
  ['sglang', 'sglang-whole'],
  ['sglang', 'sglang-whole-text-new-ids'],
  ['sglang', 'sglang-new'],
])('%s %s', (dialect, form) => checkDoors(dialect, form === undefined ? [] : [form]));

/** @param form form of the chunks: an engine keeps its form until it is started again */
function checkDoors(dialect: EngineDialect, form: string[]): void {
  const system = useGateway(1, {
    dialect,
    tokens: TOKENS,
    speed: 100,
    secondSpeed: 100,
    registered: 'both',
    engine: { streamMs: 0, scaleOut: true, zoo: form },
    gateway: { maxEngineFailures: 40, engineFailurePauseMs: 1, incrementalStreams: true },
  });
  const names = ENTRIES.filter(({ dialects }) => dialects.includes(dialect)).map(({ name }) => name);
  const doors = ZOO_DOORS.filter(({ dialects }) => dialects.includes(dialect)).map(({ path }) => path);
  const draw = fc.record({
    door: fc.constantFrom(...doors),
    stream: fc.boolean(),
    entries: fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 2 }),
    at: fc.nat({ max: 400 }).map((at) => (at % 3 === 0 ? at : at % TOKENS)),
    hits: fc.integer({ min: 1, max: 2 }),
    stopAt: fc.nat({ max: TOKENS }),
    maxTokens: fc.option(fc.integer({ min: 1, max: TOKENS + 2 }), { nil: undefined, freq: 1 }),
  });
  let prompts = 0;

  const call = async (path: string, body: object): Promise<ZooReply> => {
    const { status, body: reply } = await system.gateway.post(path, body);
    expect(status, JSON.stringify(reply)).toBe(200);
    return readReply(reply);
  };

  it('every door answers as without the behaviours', { timeout: RUNS * 10_000 }, async () => {
    const engines = [system.bench.engine.url, system.second.url];
    await fc.assert(
      fc.asyncProperty(draw, async ({ door: path, stream, entries, at, hits, stopAt, maxTokens }) => {
        const door = ZOO_DOORS.find((one) => one.path === path)!;
        prompts += 1;
        for (const url of engines) await selectZoo(url, { entries: form });
        const truth = await call(path, door.body({ prompt: prompts, stream: false }));
        const stop =
          entries.some((name) => STOP_ENTRIES.has(name)) && truth.text !== undefined
            ? stopText(truth.text, stopAt)
            : undefined;

        const later = [...form, ...entries.filter((name) => !FAILING.has(name))];
        const plain = entries.filter((name) => !WRONG.has(name));
        for (const [index, url] of engines.entries()) {
          const names = index === 0 ? entries : plain;
          await selectZoo(url, { entries: [...form, ...names], at, count: hits, later });
        }
        const found = await call(path, door.body({ prompt: prompts, stream, stop, maxTokens }));
        const faults = findSampleFaults(
          {
            text: found.text,
            tokenIds: found.ids,
            logprobs: found.logprobs,
            finishReason: found.reasons.join(),
            completionTokens: found.usage.completion,
          },
          {
            tokenIds: truth.ids,
            text: truth.text ?? decode(truth.ids),
            logprobs: truth.logprobs,
            mayLackLogprobs: mayLackLogprobs(entries),
            stop,
            maxTokens,
            // The gateway passes an abort by the engine on to the client.
            mayAbort: entries.some((name) => ABORTING.has(name)),
          },
        );
        expect(faults).toEqual([]);
        expect(found.usage.prompt).toBe(truth.usage.prompt);
        for (const url of engines) {
          if (!canNotStop(entries)) await expect.poll(() => inEngine(url)).toBe(0);
          expect((await fetchState(url)).resumeMismatches).toBe(0);
        }
        await expect.poll(() => system.leases()).toEqual({ leases: 0, waiters: 0 });
      }),
      { seed: inject('seed'), numRuns: RUNS, endOnFailure: true },
    );
  });
}

/** A stop text that begins in one token and ends in the next. */
function stopText(text: string, at: number): string {
  const words = text.split(/(?= t)/);
  const index = 1 + (at % (words.length - 3));
  return words[index]!.slice(-2) + words[index + 1]!.slice(0, 4);
}
