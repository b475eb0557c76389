import { isMultimodal } from '@broomwagon/contracts';
import { CallRefused } from './engine-client';
import { BEFORE, difference, mean, type Noise, WINDOW } from './fit';
import { parseSample, type Sample } from './join-sample';
import { Noises } from './noises';
import type { ScoredPrompt, Scorer } from './score-by-engine';

/** Result of the check of joins. Differences are means of absolute differences of log probabilities, nats. */
export interface JoinOutcome {
  /** Number of samples that the engine has scored. */
  resumed: number;
  whole: number;
  /** Number of joins that were compared. */
  joins: number;
  /** Number of these joins around which the log probabilities do not fit. */
  misfits: number;
  /** Difference of tokens that no join precedes, and the largest around a join that fits. */
  elsewhere: number;
  largestFit: number;
  /** Samples that were scored once more with a token left out, and how many of these the limit found. */
  control: { harmed: number; found: number };
  /** Tokens that were not compared, by reason. */
  skipped: { reason: string; tokens: number }[];
}

/** Scored samples of each weight version that were not cut. */
const WHOLE_PER_VERSION = 8;
const CONTROLS = 16;
const CALLS_AT_ONCE = 8;

interface Scored extends Sample {
  promptIds: number[];
  /** Recorded minus scored log probability of each token, as an amount; undefined if none was recorded. */
  differences: (number | undefined)[];
}

/**
 * Compares the log probabilities around each join, the place at which a sample was resumed, with the ones that the engine
 * gives the same tokens when it reads prompt and response as one prompt. A token that is lost or repeated at a join
 * changes the context of all tokens after the join, so their log probabilities differ by more than the noise of the engine.
 */
export class JoinCheck {
  private readonly prompts = new Map<string, ScoredPrompt>();
  private readonly resumed: Sample[] = [];
  private readonly whole = new Map<number, Sample[]>();
  private readonly skipped = new Map<string, number>();

  /** @param maxResumed most resumed samples that are scored */
  constructor(
    private readonly scorer: Scorer,
    private readonly maxResumed: number,
  ) {}

  addPrompt(id: string, prompt: ScoredPrompt): void {
    this.prompts.set(id, prompt);
  }

  /** Takes a result line that contradicts nothing. */
  add(line: number, fields: Record<string, unknown>): void {
    const sample = parseSample(line, fields);
    if (typeof sample === 'string') {
      const { tokenIds } = fields as { tokenIds?: unknown[] };
      this.skip(sample, Array.isArray(tokenIds) ? tokenIds.length : 0);
    } else if (sample.parts.length > 1) {
      if (this.resumed.length < this.maxResumed) this.resumed.push(sample);
      else this.skip(`more than ${this.maxResumed} resumed samples`, sample.tokenIds.length);
    } else {
      const { version } = sample.parts[0]!;
      const known = this.whole.get(version!) ?? [];
      if (version !== undefined && known.length < WHOLE_PER_VERSION) this.whole.set(version, [...known, sample]);
    }
  }

  /** @param say receives a sentence for each join that does not fit */
  async run(say: (problem: string) => void): Promise<JoinOutcome> {
    const versions = new Set(this.resumed.flatMap(({ parts }) => parts.map(({ version }) => version)));
    const whole = [...this.whole].flatMap(([version, samples]) => (versions.has(version) ? samples : []));
    const resumed = await this.scoreAll(this.resumed);
    const scored = [...resumed, ...(await this.scoreAll(whole))];
    const noises = new Noises(
      scored.map(({ parts, parts: [first], differences: all }) => ({
        version: first!.version,
        // The last tokens before a join belong to the join.
        differences: within(all, 0, parts.length > 1 ? first!.end - BEFORE : first!.end),
      })),
    );
    const counts = { joins: 0, misfits: 0, largestFit: 0 };
    for (const sample of resumed) {
      for (const part of sample.parts.slice(1)) {
        const noise = this.usable(part, noises);
        const around = within(sample.differences, part.start - BEFORE, part.end).slice(0, WINDOW);
        if (noise === undefined || around.length === 0) continue;
        counts.joins += 1;
        const [found, limit] = [mean(around), noise.limit(around.length)];
        if (found <= limit) {
          counts.largestFit = Math.max(counts.largestFit, found);
          continue;
        }
        counts.misfits += 1;
        say(
          `results line ${sample.line}: a token is lost or repeated before token ${part.start}, where the sample was ` +
            `resumed${part.byText ? ' by text' : ''}: ${found.toFixed(2)} nats around it, at most ${limit.toFixed(2)} fit`,
        );
        // Tokens after a lost one may differ up to the end.
        this.skip('after a join that does not fit', sample.tokenIds.length - part.end);
        break;
      }
    }
    return {
      resumed: resumed.length,
      whole: scored.length - resumed.length,
      ...counts,
      elsewhere: noises.mean,
      control: await this.control(scored, noises),
      skipped: [...this.skipped].map(([reason, tokens]) => ({ reason, tokens })),
    };
  }

  /** Noise of the weights of a part; undefined, and counted, if the engine cannot score its tokens. */
  private usable({ version, start, end }: Sample['parts'][number], noises: Noises): Noise | undefined {
    const found = version === undefined ? 'weights that changed during the attempt' : noises.find(version);
    if (typeof found !== 'string') return found;
    this.skip(found, end - start);
    return undefined;
  }

  /** Scores samples once more with one of their tokens left out, to see whether the limits find it. */
  private async control(scored: readonly Scored[], noises: Noises): Promise<JoinOutcome['control']> {
    const able = scored.flatMap((sample) => {
      const { version, end } = sample.parts[0]!;
      const noise = version === undefined || end <= 2 * WINDOW ? '' : noises.find(version);
      return typeof noise === 'string' ? [] : [{ ...sample, noise, at: Math.floor(end / 2) }];
    });
    const found = await mapSome(able.slice(0, CONTROLS), async ({ promptIds, tokenIds, logprobs, noise, at }) => {
      const again = await this.scorer.score(promptIds, tokenIds.slice(0, at + 1 + WINDOW).toSpliced(at, 1));
      const after = differences(logprobs.slice(at + 1, at + 1 + WINDOW), again.slice(at)).filter(
        (one) => one !== undefined,
      );
      return mean(after) > noise.limit(Math.max(1, after.length));
    });
    return { harmed: found.length, found: found.filter(Boolean).length };
  }

  private async scoreAll(samples: readonly Sample[]): Promise<Scored[]> {
    const scored = await mapSome(samples, (sample) => this.scoreOne(sample));
    return scored.filter((one) => one !== undefined);
  }

  private async scoreOne(sample: Sample): Promise<Scored | undefined> {
    const { tokenIds, logprobs } = sample;
    const prompt = this.prompts.get(sample.promptId);
    if (prompt === undefined) return undefined;
    if (isMultimodal({ messages: prompt.messages, engineFields: prompt.engineFields })) {
      this.skip('prompts that are not only text', tokenIds.length);
      return undefined;
    }
    try {
      const promptIds = await this.scorer.tokenize(prompt);
      const again = await this.scorer.score(promptIds, tokenIds);
      return { ...sample, promptIds, differences: differences(logprobs, again) };
    } catch (error) {
      if (!(error instanceof CallRefused)) throw error;
      this.skip('samples that the engine refuses, for example as too long', tokenIds.length);
      return undefined;
    }
  }

  private skip(reason: string, tokens: number): void {
    if (tokens === 0) return;
    this.skipped.set(reason, (this.skipped.get(reason) ?? 0) + tokens);
  }
}

function differences(recorded: Sample['logprobs'], scored: readonly number[]): (number | undefined)[] {
  return recorded.map((logprob, index) => (logprob === null ? undefined : difference(logprob, scored[index]!)));
}

function within(all: Scored['differences'], start: number, end: number): number[] {
  return all.slice(Math.max(0, start), Math.max(0, end)).filter((one) => one !== undefined);
}

/** Maps with a few calls at a time, in order. */
async function mapSome<Item, Result>(items: readonly Item[], call: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) results[index] = await call(items[index]!);
  };
  await Promise.all(Array.from({ length: CALLS_AT_ONCE }, lane));
  return results;
}
