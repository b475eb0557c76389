import type { EngineDialect } from '@broomwagon/contracts';
import * as fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import { inEngine, selectZoo, fetchState } from '../../../../lab/engine-simulator/src/test-engine';
import { findSampleFaults } from '../../../../lab/engine-simulator/src/zoo/sample-faults';
import {
  canNotStop,
  COMMON,
  FAILING,
  mayLackLogprobs,
  STOP_ENTRIES,
  PASSING,
} from '../../../../lab/engine-simulator/src/zoo/zoo-sets';
import type { Reply } from '../../../../test/system/gateway';
import { useGateway } from '../../../../test/system/gateway-bench';
import { type CutContext, ZOO_CUTS, type ZooCut } from '../../../../test/system/zoo-cuts';
import { askEngine, ZOO_DOORS, type ZooDoor } from '../../../../test/system/zoo-doors';
import { readReply, type ZooReply } from '../../../../test/system/zoo-replies';

const TOKENS = 24;
/** `ZOO_RUNS=1000 TEST_SEED=7 npm run test:one -- apps/gateway/src/dialects/zoo.spec.ts` makes 1,000 runs by each door. */
const RUNS = Number(process.env.ZOO_RUNS ?? (inject('runsFactor') === 1 ? 2 : 8));
/** Speeds of the engines: a response takes some milliseconds, takes about a second, or never ends. */
const [FAST, SLOW, STILL] = [100, 1, 0.001];
/** An engine that hangs is the subject of apps/gateway/src/http/silence.spec.ts: its deadline would be the time of each run. */
const ENTRIES = PASSING.filter(({ name }) => name !== 'hung-healthy');
/** Entries of one engine: the response ends when each engine has answered in another dialect. */
const WRONG = new Set(PASSING.filter(({ failure }) => failure === 'ENGINE_PROTOCOL').map(({ name }) => name));
const ABORTING = new Set(['done-without-reason', 'sglang-waiting-abort']);

/** Some behaviours of engines, and a request that is cut once, or runs to its end. */
interface Draw {
  stream: boolean;
  entries: string[];
  at: number;
  hits: number;
  stopAt: number;
  maxTokens: number | undefined;
  streamInterval: number | undefined;
  cut: ZooCut | undefined;
  cutAt: number;
}

interface Sent {
  /** Reply of the gateway; absent if the client has disconnected. */
  reply?: Reply;
  restore?: () => Promise<void> | undefined;
}

describe.each<[EngineDialect, string?]>([
  ['vllm'],
  ['sglang', 'sglang-whole'],
  ['sglang', 'sglang-whole-text-new-ids'],
  ['sglang', 'sglang-new'],
  ['openai'],
])('%s %s', (dialect, form) => checkDoors(dialect, form === undefined ? [] : [form]));

function drawFor(dialect: EngineDialect): fc.Arbitrary<Draw> {
  const names = ENTRIES.filter(({ dialects }) => dialects.includes(dialect)).map(({ name }) => name);
  const cuts = ZOO_CUTS.filter(({ dialects }) => dialects?.includes(dialect) ?? true);
  return fc.record({
    stream: fc.boolean(),
    entries: fc.uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 2 }),
    at: fc.nat({ max: 400 }).map((at) => (at % 3 === 0 ? at : at % TOKENS)),
    hits: fc.integer({ min: 1, max: 2 }),
    stopAt: fc.nat({ max: TOKENS }),
    maxTokens: fc.option(fc.integer({ min: 1, max: TOKENS + 2 }), { nil: undefined, freq: 1 }),
    streamInterval: fc.option(fc.integer({ min: 1, max: TOKENS + 2 }), { nil: undefined, freq: 2 }),
    cut: fc.option(fc.constantFrom(...cuts), { nil: undefined, freq: 2 }),
    cutAt: fc.nat({ max: TOKENS - 1 }),
  });
}

/** @param form form of the chunks: an engine keeps its form until it is started again */
function checkDoors(dialect: EngineDialect, form: string[]): void {
  const doors = ZOO_DOORS.filter(({ dialects }) => dialects.includes(dialect));
  const system = useGateway(doors.length, {
    dialect,
    tokens: TOKENS,
    speed: FAST,
    secondSpeed: FAST,
    registered: 'both',
    isShared: true,
    engine: { streamMs: 0, scaleOut: true, zoo: form },
    gateway: { maxEngineFailures: 40, engineFailurePauseMs: 1, incrementalStreams: true },
  });
  const listEngines = () => [system.bench.engine, system.second];
  const setSpeed = (speed: number): void => {
    for (const engine of listEngines()) engine.setSpeed(speed);
  };
  let prompts = 0;

  /** Server whose engine runs the only request, once the request has so many tokens; undefined: it has ended. */
  async function findRunning(tokens: number, isOver: () => boolean): Promise<string | undefined> {
    let index = -1;
    const isFound = async (): Promise<boolean> => {
      const states = await Promise.all(listEngines().map(({ url }) => fetchState(url)));
      index = states.findIndex(({ table }) =>
        table.some(({ state, made }) => (state === 'running' || state === 'waiting') && made >= tokens),
      );
      return isOver() || index >= 0;
    };
    await expect.poll(isFound, { interval: 5 }).toBe(true);
    return isOver() ? undefined : ['s1', 's2'][index];
  }

  async function expectIdle(entries: readonly string[]): Promise<void> {
    for (const { url } of listEngines()) {
      if (!canNotStop(entries)) await expect.poll(() => inEngine(url), { interval: 5 }).toBe(0);
      expect((await fetchState(url)).resumeMismatches).toBe(0);
    }
    await expect.poll(() => system.leases(), { interval: 5 }).toEqual({ leases: 0, waiters: 0 });
  }

  /** Number of requests for responses that both engines have got. */
  async function countReceived(): Promise<number> {
    const states = await Promise.all(listEngines().map(({ url }) => fetchState(url)));
    return states.reduce((sum, { requests }) => sum + requests.received, 0);
  }

  /** Sends a request whose response is cut. @returns no reply: the client has disconnected */
  async function sendCut(path: string, body: object, draw: Draw & { cut: ZooCut }): Promise<Sent> {
    const { cut, cutAt, entries } = draw;
    const client = new AbortController();
    let isOver = false;
    setSpeed(SLOW);
    const replied = system.gateway
      .post(path, body, Object.assign(headersOf(draw), cut.headers), client.signal)
      .catch((error: Error) => {
        if (!client.signal.aborted) throw error;
      })
      .finally(() => (isOver = true));
    const serverId = await findRunning(cutAt, () => isOver);
    setSpeed(STILL);
    const context: CutContext = { system, serverId, disconnect: () => client.abort() };
    await cut.cut(context);
    // On engines that stand still, nothing ends by itself.
    if (cut.ends === undefined) setSpeed(FAST);
    await cut.resume?.(context);
    const reply = await replied;
    if (cut.ends !== undefined) await expectIdle(entries);
    setSpeed(FAST);
    return { reply: reply ?? undefined, restore: () => cut.restore?.(context) };
  }

  async function checkDoor(door: ZooDoor, draw: Draw): Promise<void> {
    const { stream, entries, at, hits, stopAt, maxTokens, cut } = draw;
    prompts += 1;
    const truth = await askEngine(system.second.url, dialect, door, prompts);
    const hasStop = entries.some((name) => STOP_ENTRIES.has(name)) && door.name !== 'tokens';
    const stop = hasStop ? stopText(truth.text!, stopAt) : undefined;

    const later = [...form, ...entries.filter((name) => !FAILING.has(name))];
    const plain = entries.filter((name) => !WRONG.has(name));
    for (const [index, { url }] of listEngines().entries()) {
      const names = index === 0 ? entries : plain;
      await selectZoo(url, { entries: [...form, ...names], at, count: hits, later });
    }
    const body = door.body({ dialect, prompt: prompts, stream, stop, maxTokens });
    const receivedBefore = await countReceived();
    const { reply, restore }: Sent = cut
      ? await sendCut(door.path, body, { ...draw, cut })
      : { reply: await system.gateway.post(door.path, body, headersOf(draw)) };
    if (reply !== undefined) {
      const canBreak = stream && door.beginsAgain?.includes(dialect) === true;
      validateReply(door, reply, { ...truth, stop, maxTokens }, { entries, cut, canBreak });
    }
    const isSentOnce = cut?.isUncut && !entries.some((name) => FAILING.has(name));
    if (isSentOnce) expect(await countReceived(), 'requests that the engines got').toBe(receivedBefore + 1);
    await expectIdle(entries);
    for (const { url } of listEngines()) await selectZoo(url, { entries: form });
    await restore?.();
  }

  function validateReply(
    door: ZooDoor,
    { status, body }: Reply,
    { text, ids, logprobs, usage, stop, maxTokens }: ZooReply & { stop?: string; maxTokens?: number },
    { entries, cut, canBreak }: { entries: string[]; cut?: ZooCut; canBreak: boolean },
  ): void {
    expect(status, JSON.stringify(body)).toBe(200);
    const found = readReply(body);
    if (canBreak && found.error !== undefined) {
      expect(found.error).toMatch(/^ENGINE_/);
      expect([text!.startsWith(found.text ?? ''), found.reasons]).toEqual([true, []]);
      return;
    }
    const hasIds = door.hasIds === true && dialect !== 'openai';
    const isAborted = found.reasons[0] === 'abort';
    // Servers of the dialect `openai` count tokens at the end of a response. Before, a chunk counts as one token, unless
    // it has log probabilities, and a busy engine sends several tokens in a chunk.
    const isCounted = !isAborted || dialect !== 'openai' || door.hasIds === true;
    if (!isCounted) expect(found.usage.completion).toBeLessThanOrEqual(usage.completion!);
    const faults = findSampleFaults(
      {
        text: found.text,
        tokenIds: hasIds ? found.ids : undefined,
        logprobs: hasIds ? found.logprobs : undefined,
        finishReason: found.error ?? found.reasons.join(),
        completionTokens: isCounted ? found.usage.completion : undefined,
      },
      {
        tokenIds: ids,
        text: text!,
        logprobs: hasIds ? logprobs : undefined,
        mayLackLogprobs: mayLackLogprobs(entries),
        stop,
        maxTokens,
        mayStopLate: entries.some((name) => COMMON.has(name)),
        // The gateway passes an abort by the engine on to the client.
        mayAbort: cut?.ends === 'abort' || (cut?.headers === undefined && entries.some((name) => ABORTING.has(name))),
      },
    );
    expect(faults).toEqual([]);
    // The engine counts the prompt; servers of the dialect `openai` do so at the end of a response.
    const mayBeUncounted = isAborted && (dialect === 'openai' || door.isChat === true);
    expect(mayBeUncounted ? [usage.prompt, 0] : [usage.prompt]).toContain(found.usage.prompt);
  }

  it.each(doors)('$name answer as without the behaviours', { timeout: RUNS * 20_000 }, async (door) => {
    const property = fc.asyncProperty(drawFor(dialect), (draw) => checkDoor(door, draw));
    await fc.assert(property, { seed: inject('seed') + doors.indexOf(door), numRuns: RUNS, endOnFailure: true });
  });
}

const headersOf = ({ streamInterval }: Draw): Record<string, string> =>
  streamInterval === undefined ? {} : { 'x-broomwagon-stream-interval': `${streamInterval}` };

/** A stop text that begins in one token and ends in the next. */
function stopText(text: string, at: number): string {
  const words = text.split(/(?= t)/);
  const index = 1 + (at % (words.length - 3));
  return words[index]!.slice(-2) + words[index + 1]!.slice(0, 4);
}
