import {
  createEngineAdapter,
  engineRequestId,
  sampleSeed,
  type GenerationRequest,
  type GenerationResult,
} from '@broomwagon/engines';
import type { Prompt } from '@broomwagon/contracts';
import { equalShares, marginOfShares, type EqualShares, type WantedTokens } from '@broomwagon/testing';
import { afterEach, describe, expect, inject, it } from 'vitest';
import { EngineClient } from '../../lab/demo/src/checker/engine-client';
import { JoinCheck } from '../../lab/demo/src/checker/join-check';
import { scoreBy } from '../../lab/demo/src/checker/score-by-engine';

const url = process.env.REAL_ENGINE_URL!;
const apiKey = process.env.ENGINE_API_KEY;
const { dialect, model, capabilities } = inject('engine');
const options = { model, apiKey, callTimeoutMs: 30_000 };
const adapter = createEngineAdapter(dialect, url, options);

/** Tokens of a response that is cut at every one of them. */
const SHORT = 24;
/** More than is made in the time of a test. */
const LONG = Math.min(100_000, (capabilities.maxModelTokens ?? 16_384) - 1_000);

const text: Prompt = { text: 'Natalia sold clips to 48 of her friends.' };
const messages: Prompt = { messages: [{ role: 'user', content: 'How many clips?' }] };
const tokenIds: Prompt = { promptTokenIds: [60, 61, 62, 63, 64, 65, 66, 67] };
const prompts = capabilities.tokenIdsIn ? [text, messages, tokenIds] : [text, messages];

const run = `${Date.now()}`;
let attempts = 0;
function attempt(prompt: Prompt, more: Partial<GenerationRequest> = {}): GenerationRequest {
  const sampling = { temperature: 0, logprobs: capabilities.logprobs };
  return { engineRequestId: engineRequestId(run, `${++attempts}`), prompt, maxTokens: SHORT, sampling, ...more };
}
/** An attempt that does not end by itself, where the dialect has a minimum of tokens. */
function endless(prompt: Prompt = text): GenerationRequest {
  const minTokens = dialect === 'openai' ? {} : { minTokens: LONG };
  return attempt(prompt, { maxTokens: LONG, sampling: { temperature: 0, ...minTokens } });
}
/** Starts an endless attempt. `grows` resolves when the engine has sent more tokens than before the call. */
function started(request = endless(), signal?: AbortSignal) {
  let tokens = 0;
  const onTokens = ({ tokenCount }: { tokenCount: number }): void => void (tokens += tokenCount);
  const ended = adapter.generate(request, { signal, onTokens });
  const grows = (from = tokens) => expect.poll(() => tokens, { timeout: 30_000 }).toBeGreaterThan(from);
  return { ended, grows, tokens: () => tokens };
}
async function inEngine(): Promise<number> {
  const { running, waiting } = (await adapter.report()).load!;
  return running + waiting;
}
const isIdle = () => expect.poll(inEngine, { timeout: 30_000, interval: 100 }).toBe(0);

/** Runs a sample in as many attempts as there are cuts, each ended by its budget. */
async function inParts(prompt: Prompt, cuts: number[]): Promise<GenerationResult[]> {
  const parts: GenerationResult[] = [];
  for (const maxTokens of [...cuts, SHORT]) {
    const made = {
      tokenIds: parts.flatMap((part) => part.tokenIds ?? []),
      text: parts.map((part) => part.text).join(''),
    };
    const tokenCount = parts.reduce((sum, part) => sum + (part.usage?.completionTokens ?? part.tokenCount), 0);
    const last = await adapter.generate(attempt(prompt, { maxTokens, made: { ...made, tokenCount } }));
    parts.push(last);
    if (last.finishReason === 'stop') break;
  }
  return parts;
}

afterEach(async () => {
  if (capabilities.loadReport) await isIdle();
});

describe('a real engine', () => {
  it('is detected, and healthy', async () => {
    await adapter.health();
    expect(model).not.toBe('');
    // The probe of the setup may still run on a busy machine.
    if (capabilities.loadReport) await isIdle();
  });

  it.each(prompts)('streams %j in increments that add up', async (prompt) => {
    const seen = { text: '', tokens: 0, tokenIds: [] as number[], increments: 0 };
    const result = await adapter.generate(attempt(prompt), {
      onTokens: (increment) => {
        seen.text += increment.text;
        seen.tokens += increment.tokenCount;
        seen.tokenIds.push(...(increment.tokenIds ?? []));
        seen.increments += 1;
      },
    });
    expect(seen.increments).toBeGreaterThan(1);
    expect(result.text).toBe(seen.text);
    expect(result.usage!.completionTokens).toBeGreaterThan(0);
    expect(result.usage!.completionTokens).toBeLessThanOrEqual(SHORT);
    expect(['stop', 'length']).toContain(result.finishReason);
    if (!capabilities.tokenIdsOut) return;
    expect(result.tokenIds).toEqual(seen.tokenIds);
    expect(result.tokenCount).toBe(result.usage!.completionTokens);
    if (capabilities.logprobs) expect(result.logprobs).toHaveLength(result.tokenCount);
  });

  it.each(prompts)('resumes %j, cut at any token or at several, to the same tokens as uncut', async (prompt) => {
    const uncut = await adapter.generate(attempt(prompt));
    const total = uncut.usage!.completionTokens;
    const cuts = Array.from({ length: total - 1 }, (_, index) => [index + 1]);
    cuts.push([1, 2, 3], [Math.floor(total / 3), Math.floor((2 * total) / 3)]);
    for (const at of cuts) {
      const parts = await inParts(prompt, at);
      expect(parts.reduce((sum, part) => sum + (part.usage?.completionTokens ?? 0), 0)).toBeLessThanOrEqual(SHORT);
      // A resume by text is as exact as the tokenizer, which guarantees nothing.
      if (parts.some((part) => part.resumedBy === 'text')) continue;
      expect(parts.flatMap((part) => part.tokenIds!)).toEqual(uncut.tokenIds);
      expect(parts.at(-1)!.finishReason).toBe(uncut.finishReason);
      const logprobs = parts.flatMap((part) => part.logprobs ?? []);
      uncut.logprobs?.forEach((logprob, index) => expect(logprobs[index]).toBeCloseTo(logprob!, 2));
    }
    const resumedBy = (await inParts(prompt, [2])).at(-1)!.resumedBy;
    const byTokens = capabilities.tokenIdsOut && (capabilities.tokenize || prompt.promptTokenIds !== undefined);
    if (dialect === 'vllm') expect(resumedBy).toBe(byTokens ? 'tokens' : 'text');
  });

  it('reports the stop token of a response', async () => {
    const { text: made, tokenIds: ids } = await adapter.generate(attempt(text));
    if (ids === undefined || dialect === 'openai') return;
    const stopTokenIds = [ids[3]!];
    const stopped = await adapter.generate(attempt(text, { sampling: { temperature: 0, stopTokenIds } }));
    expect(stopped).toMatchObject({ finishReason: 'stop', stopReason: stopTokenIds[0] });
    expect(made.startsWith(stopped.text)).toBe(true);
  });

  it('refuses an impossible budget with an error that is not retryable', async () => {
    const tooLong = attempt(text, { maxTokens: 9_999_999 });
    if (capabilities.maxModelTokens === undefined) return;
    await expect(adapter.generate(tooLong)).rejects.toMatchObject({ code: 'ENGINE_REJECTED', retryable: false });
  });

  it('serves many streams at once, each its own', async () => {
    const [uncut, ...others] = await Promise.all(Array.from({ length: 128 }, () => adapter.generate(attempt(text))));
    for (const other of others) expect(other.usage).toEqual(uncut!.usage);
  });
});

describe.skipIf(!capabilities.loadReport)('a real engine that reports its load', () => {
  it('has stopped a request soon after its connection is closed, without an abort', async () => {
    const gone = new AbortController();
    const prompt = { model, prompt: 'x', max_tokens: LONG, min_tokens: LONG, stream: true };
    const answer = await fetch(`${adapter.url}/v1/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${apiKey}` },
      body: JSON.stringify(prompt),
      signal: gone.signal,
    });
    expect(answer.status).toBe(200);
    await answer.body!.getReader().read();
    gone.abort();
    await isIdle();
  });

  it('keeps the tokens of an aborted attempt, stops it, and continues from there exactly', async () => {
    const uncut = await adapter.generate(attempt(text, { maxTokens: 200 }));
    for (const after of [1, 5, 60]) {
      const cut = new AbortController();
      let seen = 0;
      const first = await adapter.generate(endless(), {
        signal: cut.signal,
        onTokens: ({ tokenCount }) => {
          seen += tokenCount;
          if (seen >= after) cut.abort();
        },
      });
      expect(first.finishReason).toBe('aborted');
      expect(first.tokenCount).toBeGreaterThanOrEqual(after);
      await isIdle();
      if (first.tokenIds === undefined) continue;
      const same = Math.min(first.tokenCount, uncut.tokenCount);
      const rest = await adapter.generate(attempt(text, { maxTokens: 200, made: first }));
      // The endless attempt may have passed the end of the uncut response; up to that end both are equal.
      if (uncut.finishReason === 'length' && first.tokenCount <= 200) {
        expect([...first.tokenIds, ...(rest.tokenIds ?? [])]).toEqual(uncut.tokenIds);
      } else {
        expect(first.tokenIds.slice(0, same)).toEqual(uncut.tokenIds!.slice(0, same));
      }
    }
  });

  it('has no requests left after attempts are aborted at any moment, also before it has got them', async () => {
    const ends = Array.from({ length: 40 }, async (_, index) => {
      const cut = new AbortController();
      setTimeout(() => cut.abort(), index * 5);
      return adapter.generate(endless(), { signal: cut.signal });
    });
    for (const { finishReason } of await Promise.all(ends)) expect(finishReason).toBe('aborted');
    await isIdle();
  });

  it.skipIf(!capabilities.abortById)(
    'stops one of two requests by id while the other runs on, and ignores an unknown id',
    async () => {
      for (const prompt of prompts) {
        const request = endless(prompt);
        const end = new AbortController();
        const [one, other] = [started(request), started(endless(prompt), end.signal)];
        await Promise.all([one.grows(), other.grows()]);
        expect(await adapter.abort(request.engineRequestId)).toBe(true);
        expect(await one.ended).toMatchObject({ finishReason: 'aborted' });
        expect(await adapter.abort(engineRequestId('unknown', '1'))).toBe(true);
        await other.grows();
        end.abort();
        expect(await other.ended).toMatchObject({ finishReason: 'aborted' });
        await isIdle();
      }
    },
  );

  it.skipIf(!capabilities.pauseModes?.includes('keep'))('is paused with its requests kept, and continues', async () => {
    const end = new AbortController();
    const kept = started(endless(), end.signal);
    await kept.grows();
    await adapter.pause('keep');
    await adapter.pause('keep');
    // Tokens that the engine had sent before the pause arrive; then there is silence.
    let before = -1;
    await expect.poll(() => before === (before = kept.tokens()), { interval: 500, timeout: 30_000 }).toBe(true);
    await adapter.resume();
    await kept.grows(before);
    end.abort();
    await kept.ended;
  });

  it.skipIf(!capabilities.pauseModes?.includes('abort'))('is paused with its requests ended', async () => {
    const { ended, grows } = started();
    await grows();
    await adapter.pause('abort');
    expect(await ended).toMatchObject({ finishReason: 'aborted' });
    await adapter.resume();
    expect((await adapter.generate(attempt(text))).tokenCount).toBeGreaterThan(0);
  });

  it.skipIf(!capabilities.prefixCacheReset)('resets its prefix cache', async () => {
    await isIdle();
    await adapter.resetPrefixCache();
  });
});

/**
 * Shares of equal tokens at temperature 1. Chance is the share without a seed, where the engine draws its own random
 * numbers. If seeds are independent, a share is above chance by more than MARGIN once in a million times.
 */
describe.skipIf(!capabilities.tokenIdsOut)('sampling noise of a real engine', () => {
  const PAIRS = 256;
  /**
   * On a model whose tokens are nearly equally likely, random numbers matter more than the prompt: the pairs are of
   * different prompts. On others they are of one prompt, as in two epochs of a data set: only the seeds can differ.
   */
  const isFlat = process.env.REAL_ENGINE_IS_FLAT !== undefined;
  const DISTINCT_PROMPTS = isFlat ? 2 * PAIRS : PAIRS;
  const PIECE = 32;
  const MARGIN = marginOfShares(PAIRS, 1e-6);
  // With so few streams all prompts fit into one batch: on a CPU, vLLM 0.32 dies of a seeded request whose prompt is
  // split.
  const calm = createEngineAdapter(dialect, url, { ...options, maxStreams: 32 });
  type SeedOf = (wanted: WantedTokens) => number | undefined;
  const ownSeed: SeedOf = ({ prompt, sample, made }) =>
    sampleSeed(1, { job: run, groupId: `g${prompt}`, sampleIndex: sample, madeTokens: made.length });

  async function sampled(wanted: WantedTokens, seed: number | undefined): Promise<number[]> {
    const maxTokens = wanted.made.length + PIECE;
    // All responses have one length, so that shares can be compared.
    const sampling = { temperature: 1, minTokens: maxTokens, seed };
    const number = wanted.prompt % DISTINCT_PROMPTS;
    const prompt = { promptTokenIds: [60, 61, 2 + (number % 250), 2 + Math.floor(number / 250)] };
    const made = { tokenIds: [...wanted.made] };
    return (await calm.generate(attempt(prompt, { maxTokens, sampling, made }))).tokenIds!;
  }
  const sharesWith = async (name: string, seedOf: SeedOf): Promise<EqualShares> => {
    const shares = await equalShares((wanted) => sampled(wanted, seedOf(wanted)), PAIRS);
    console.log(`Equal tokens at equal positions, ${name}: ${JSON.stringify(shares)}; margin ${MARGIN.toFixed(3)}`);
    return shares;
  };

  it('is independent between groups, samples and resumed tails; one seed for all groups is detected', async () => {
    const chance = await sharesWith('no seeds', () => undefined);
    const own = await sharesWith('a seed for each sample and place', ownSeed);
    for (const kind of ['prompts', 'samples', 'tails'] as const) {
      expect(own[kind], kind).toBeLessThan(chance[kind] + MARGIN);
    }
    const shared = await sharesWith('seed + sample index', ({ sample }) => 1 + sample);
    expect(shared.prompts).toBeGreaterThan(chance.prompts + MARGIN);
    if (isFlat) expect(shared.tails).toBeGreaterThan(chance.tails + MARGIN);
  });

  it('is the same for the same sample and place', async () => {
    const wanted = { prompt: 7, sample: 1, made: [] };
    const tokens = await sampled(wanted, ownSeed(wanted));
    expect(await sampled(wanted, ownSeed(wanted))).toEqual(tokens);
    const tail = { ...wanted, made: tokens };
    expect(await sampled(tail, ownSeed(tail))).toEqual(await sampled(tail, ownSeed(tail)));
  });
});

describe.skipIf(dialect === 'openai')('a real engine that scores responses again', () => {
  it('gives a resumed response the log probabilities that were recorded, and others after a lost token', async () => {
    const half = 100;
    const sampling = { temperature: 1, logprobs: true };
    const endlessText = { ...text, engineFields: { ignore_eos: true } };
    const first = await adapter.generate(attempt(endlessText, { maxTokens: half, sampling }));
    const made = { tokenIds: first.tokenIds!, text: first.text, tokenCount: half };
    const second = await adapter.generate(attempt(endlessText, { maxTokens: 2 * half, sampling, made }));
    const scorer = await scoreBy(new EngineClient(url, apiKey));
    const check = async (lost: number) => {
      const joins = new JoinCheck(scorer, 1);
      joins.addPrompt('p', { prompt: text.text });
      const parts = [first, second].map(({ tokenIds: ids, logprobs }, index) =>
        index === 0
          ? { ids: ids!.slice(0, half - lost), logprobs: logprobs!.slice(0, half - lost) }
          : { ids: ids!, logprobs: logprobs! },
      );
      joins.add(1, {
        promptId: 'p',
        tokenIds: parts.flatMap(({ ids }) => ids),
        logprobs: parts.flatMap(({ logprobs }) => logprobs),
        segments: parts.map(({ ids }) => ({ tokenCount: ids.length, weightVersion: 0 })),
      });
      return joins.run(() => undefined);
    };
    expect(await check(0)).toMatchObject({ joins: 1, misfits: 0, skipped: [], control: { harmed: 1, found: 1 } });
    expect(await check(1)).toMatchObject({ joins: 1, misfits: 1 });
  });
});

describe.skipIf(dialect === 'openai')('a real engine of which only the OpenAI routes are used', () => {
  const plain = createEngineAdapter('openai', url, options);

  it.each([text, messages])('streams %j, and resumes it by text within the budget', async (prompt) => {
    const first = await plain.generate(attempt(prompt, { maxTokens: 10 }));
    expect(first.tokenIds).toBeUndefined();
    expect(first.text).not.toBe('');
    const made = { text: first.text, tokenCount: first.usage!.completionTokens };
    if (first.finishReason === 'stop') return;
    expect(made.tokenCount).toBe(10);
    const rest = await plain.generate(attempt(prompt, { made }));
    expect(rest.resumedBy).toBe('text');
    expect(rest.usage!.completionTokens).toBeLessThanOrEqual(SHORT - 10);
  });

  it('stops a request by closing its connection', async () => {
    const cut = new AbortController();
    const sampling = { temperature: 0 };
    const request = attempt(text, { maxTokens: LONG, sampling });
    const result = await plain.generate(request, { signal: cut.signal, onTokens: () => cut.abort() });
    expect(result.finishReason).toBe('aborted');
    expect(result.tokenCount).toBeGreaterThan(0);
    if (capabilities.loadReport) await isIdle();
  });
});
