import { BroomwagonError } from '@broomwagon/contracts';
import { describe, expect, it } from 'vitest';
import type { GenerationRequest, GenerationResult } from '../engine-adapter';
import { askedInterval, SGLANG_INTERVALS, StreamIntervals, VLLM_INTERVALS } from './stream-intervals';

interface Said {
  status: number;
  text: string;
}

/** Intervals of an engine that answers the probe so, and reports this version. */
function createIntervals(
  rules: ConstructorParameters<typeof StreamIntervals>[1],
  answer: Said | Error,
  version?: string,
) {
  const calls: string[] = [];
  const call = (_method: string, path: string): Promise<Said> => {
    calls.push(path);
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  };
  return { calls, intervals: new StreamIntervals({ call }, rules, () => Promise.resolve(version)) };
}

const vllmFault = (field: string, type: string) =>
  `{'type': '${type}', 'loc': ('body', '${field}'), 'msg': 'wrong', 'input': 0}`;
const REFUSED = (text: string, status = 400): Said => ({ status, text });
const TEMPERATURE = vllmFault('temperature', 'float_parsing');

const NOT_THERE = new BroomwagonError('ENGINE_UNREACHABLE', 'no answer');

describe('whether an engine takes the field', () => {
  it.each<[string, Said | Error, string | undefined, boolean]>([
    [
      'names both fields',
      REFUSED(`2 validation errors: ${vllmFault('stream_interval', 'greater_than_equal')} ${TEMPERATURE}`),
      '0.1.0',
      true,
    ],
    ['names the wrong field alone', REFUSED(`1 validation error: ${TEMPERATURE}`), '0.33.0', false],
    ['names the wrong field alone, with 422', REFUSED(TEMPERATURE, 422), '0.33.0', false],
    [
      'does not allow the field',
      REFUSED(`${vllmFault('stream_interval', 'extra_forbidden')} ${TEMPERATURE}`),
      '0.33.0',
      false,
    ],
    ['wants a key', REFUSED('Unauthorized', 401), '0.27.0', true],
    ['wants a key', REFUSED('Unauthorized', 401), '0.26.1', false],
    ['does not answer', NOT_THERE, '0.27.1', true],
    ['does not answer', NOT_THERE, undefined, false],
  ])('vLLM that %s: %o, version %s -> %s', async (_, answer, version, taken) => {
    expect(await createIntervals(VLLM_INTERVALS, answer, version).intervals.isTaken()).toBe(taken);
  });

  it.each<[string, Said | Error, string | undefined, boolean]>([
    [
      'has read the parameters',
      REFUSED('{"error":{"message":"temperature must be non-negative, got -1."}}'),
      '0.4.1',
      true,
    ],
    ['fails at the name', REFUSED('Internal Server Error', 500), '0.5.23', false],
    ['names the field', REFUSED("Unexpected keyword argument 'stream_interval'"), '0.5.23', false],
    ['is paused', NOT_THERE, '0.5.3', true],
    ['is paused', NOT_THERE, '0.4.6', false],
  ])('SGLang that %s: %o, version %s -> %s', async (_, answer, version, taken) => {
    expect(await createIntervals(SGLANG_INTERVALS, answer, version).intervals.isTaken()).toBe(taken);
  });

  it.each<[string, Said | Error, number]>([
    ['once', REFUSED('temperature'), 1],
    ['once, also if its answer shows nothing', REFUSED('Unauthorized', 401), 1],
    ['again if it did not answer', NOT_THERE, 2],
    ['again if it cannot serve now', REFUSED('loading', 503), 2],
  ])('is asked %s', async (_, answer, probes) => {
    const { calls, intervals } = createIntervals(SGLANG_INTERVALS, answer, '0.5.23');
    // Calls that start together share one probe.
    for (let turns = 0; turns < 2; turns += 1) {
      expect(await Promise.all([intervals.isTaken(), intervals.isTaken()])).toEqual([true, true]);
    }
    expect(calls).toEqual(Array(probes).fill('/generate?probe=stream_interval'));
  });
});

const request = (fields: Partial<GenerationRequest> = {}): GenerationRequest => ({
  engineRequestId: 'x',
  prompt: { text: 'a' },
  maxTokens: 16,
  ...fields,
});

describe('the field of a call', () => {
  const taking = () => createIntervals(VLLM_INTERVALS, REFUSED(`stream_interval ${TEMPERATURE}`));

  it.each<[string, GenerationRequest, boolean, object]>([
    ['a setting', request({ streamInterval: 64 }), false, { stream_interval: 64 }],
    ['no setting', request(), false, {}],
    ['a setting of 1', request({ streamInterval: 1 }), false, {}],
    ['a setting, for a chat that the engine parses', request({ streamInterval: 64 }), true, {}],
    ['the caller', request({ streamInterval: 64, sampling: { streamInterval: 7 } }), false, { stream_interval: 7 }],
    [
      'the caller, for single tokens',
      request({ streamInterval: 64, sampling: { streamInterval: 1 } }),
      false,
      { stream_interval: 1 },
    ],
    [
      'the caller, for a chat that the engine parses',
      request({ sampling: { streamInterval: 7 } }),
      true,
      { stream_interval: 7 },
    ],
    [
      "the caller's own fields",
      request({ streamInterval: 64, prompt: { text: 'a', engineFields: { stream_interval: 3 } } }),
      false,
      {},
    ],
  ])('by %s', async (_, asked, isParsed, field) => {
    expect(await taking().intervals.field(asked, isParsed)).toEqual(field);
  });

  it('costs no probe without an interval', async () => {
    const { calls, intervals } = taking();
    await intervals.field(request());
    expect(calls).toEqual([]);
  });

  it('is left out for an engine that does not take it', async () => {
    const { intervals } = createIntervals(VLLM_INTERVALS, REFUSED(TEMPERATURE));
    expect(await intervals.field(request({ streamInterval: 64 }))).toEqual({});
    expect(await intervals.field(request({ sampling: { streamInterval: 7 } }))).toEqual({});
  });

  it('goes to a plain server only for the caller', async () => {
    const { calls, intervals } = createIntervals(undefined, NOT_THERE);
    expect(await intervals.field(request({ streamInterval: 64 }))).toEqual({});
    expect(await intervals.field(request({ sampling: { streamInterval: 7 } }))).toEqual({ stream_interval: 7 });
    expect(calls).toEqual([]);
  });
});

describe('a call that the engine refuses', () => {
  const refusal = new BroomwagonError('ENGINE_REJECTED', 'Unknown field: stream_interval');

  it.each([VLLM_INTERVALS, undefined])('because of the field is repeated once without it', async (rules) => {
    const { intervals } = createIntervals(rules, REFUSED(`stream_interval ${TEMPERATURE}`));
    const asked = request({ sampling: { streamInterval: 7 } });
    const sent: object[] = [];
    const run = () =>
      intervals.run(async () => {
        sent.push(await intervals.field(asked));
        if ('stream_interval' in sent.at(-1)!) throw refusal;
        return 'done';
      });
    expect([await run(), await run()]).toEqual(['done', 'done']);
    expect(sent).toEqual([{ stream_interval: 7 }, {}, {}]);
  });

  it('because of the field is repeated, though another call was refused before', async () => {
    const { intervals } = createIntervals(VLLM_INTERVALS, REFUSED(`stream_interval ${TEMPERATURE}`));
    const asked = request({ sampling: { streamInterval: 7 } });
    const refusals: (() => void)[] = [];
    const run = () =>
      intervals.run(async () => {
        if (!('stream_interval' in (await intervals.field(asked)))) return 'done';
        await new Promise<void>((resolve) => refusals.push(resolve));
        throw refusal;
      });
    const runs = [run(), run()];
    await expect.poll(() => refusals.length).toBe(2);
    for (const refuse of refusals) refuse();
    expect(await Promise.all(runs)).toEqual(['done', 'done']);
  });

  it.each([refusal, new BroomwagonError('ENGINE_REJECTED', 'too long')])('otherwise fails: %s', async (error) => {
    const { intervals } = createIntervals(VLLM_INTERVALS, REFUSED(TEMPERATURE));
    await intervals.isTaken();
    let calls = 0;
    const run = intervals.run(() => {
      calls += 1;
      return Promise.reject(error);
    });
    await expect(run).rejects.toBe(error);
    expect(calls).toBe(1);
  });
});

describe('events of an engine', () => {
  const END: GenerationResult = { text: '', tokenCount: 0, finishReason: 'stop' };

  /** Reports of a call with these events: mean tokens of an event, and the tokens that were asked for. */
  async function watch(body: Record<string, unknown>, events: number[]): Promise<number[][]> {
    const { intervals } = createIntervals(undefined, NOT_THERE);
    const [received, reports]: [number[], number[][]] = [[], []];
    const options = {
      onTokens: ({ tokenCount }: { tokenCount: number }) => void received.push(tokenCount),
      onEventSizes: (...report: number[]) => void reports.push(report),
    };
    await intervals.watch(askedInterval(body), options, ({ onTokens }) => {
      for (const tokenCount of events) onTokens?.({ text: '', tokenCount });
      return Promise.resolve(END);
    });
    expect(received).toEqual(events);
    return reports;
  }

  const repeat = (count: number, tokens: number) => Array<number>(count).fill(tokens);
  it.each<[Record<string, unknown>, number[], number[][]]>([
    [{ stream_interval: 10 }, repeat(200, 1), [[1, 10]]],
    [{ sampling_params: { stream_interval: 10 } }, repeat(200, 1), [[1, 10]]],
    [{ stream_interval: 10 }, repeat(50, 4), [[4, 10]]],
    [{ stream_interval: 10 }, [1, ...repeat(20, 10), 3], [[0, 10]]],
    // An engine that is late sends the tokens of two intervals together.
    [{ stream_interval: 10 }, [1, ...repeat(10, 20), 3], [[0, 10]]],
    [{ stream_interval: 10 }, [1, ...repeat(4, 50), 3], [[34, 10]]],
    [{ stream_interval: 64 }, [500], [[500, 64]]],
    [{ stream_interval: 100 }, repeat(150, 1), []],
    [{}, repeat(200, 1), []],
    [{ stream_interval: 1 }, repeat(200, 1), []],
  ])('are compared with the interval of the call: %j, %j', async (body, events, reports) => {
    expect(await watch(body, events)).toEqual(reports);
  });
});
