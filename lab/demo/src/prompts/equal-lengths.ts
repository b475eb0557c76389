import type { Prompt } from '@broomwagon/contracts';
import { LENGTH_PRESETS, responseLength, type LengthPresetName } from '@broomwagon/models';
import type { PromptRecord } from '../../../reference-trainer/src/prompts/prompt-record';
import type { ResultLine, ResultSink } from '../../../reference-trainer/src/results/result-line';
import { UsageError } from '../../../reference-trainer/src/usage-error';
import type { FleetEngine } from '../../../reference-trainer/src/fleet/fleet';
import { EngineClient } from '../checker/engine-client';
import { scoreBy, type Scorer } from '../checker/score-by-engine';
import { DEFAULTS, type TrainerOptions } from '../options/trainer-options';

/** Lengths of samples, a function of these fields. */
export interface LengthChoice {
  preset: LengthPresetName;
  seed: number;
  /** Samples of each group, and token budget of one sample. */
  samples: number;
  maxTokens: number;
}

/**
 * Prepares equal lengths, as the options ask for; undefined if they do not.
 * @throws UsageError for an engine that is not vLLM
 */
export async function prepareLengths(
  options: TrainerOptions,
  engines: readonly FleetEngine[],
  dataSet: readonly PromptRecord[],
): Promise<EqualLengths | undefined> {
  if (!options.equalLengths) return undefined;
  const other = engines.find(({ dialect }) => dialect !== 'vllm');
  if (other !== undefined) {
    throw new UsageError(`--lengths with --engine needs vLLM, and ${other.endpoint} is ${other.dialect} (see --help)`);
  }
  const preset = options.lengths as LengthPresetName;
  const { samples, sampling, maxTokens = LENGTH_PRESETS[preset].capTokens } = options;
  const { tokenize } = await scoreBy(new EngineClient(engines[0]!.endpoint, process.env.ENGINE_API_KEY));
  return EqualLengths.create(dataSet, { preset, seed: sampling.seed ?? DEFAULTS.seed, samples, maxTokens }, tokenize);
}

/**
 * Lengths that are the same in every run of a data set on real engines. They travel with the prompts, and the middleware
 * of examples/equal-lengths in each vLLM finds the sample of a request by its seed.
 */
export class EqualLengths {
  private constructor(
    private readonly prompts: readonly { record: PromptRecord; tokenIds: number[]; lengths: number[] }[],
    private readonly choice: LengthChoice,
  ) {}

  /** @throws UsageError for a chat with fields of the engine, which could change its tokens */
  static async create(
    dataSet: readonly PromptRecord[],
    choice: LengthChoice,
    tokenize: Scorer['tokenize'],
  ): Promise<EqualLengths> {
    const prompts = [];
    for (const record of dataSet) {
      const { text: prompt, messages, promptTokenIds, engineFields } = record.prompt;
      if (messages !== undefined && engineFields !== undefined) {
        throw new UsageError(`line ${record.line} of the prompts has messages and engineFields: not with --lengths`);
      }
      // Tokens beyond those of the prompt are the tokens that a sample has already.
      const tokenIds = await tokenize({ prompt, messages, promptTokenIds, engineFields });
      prompts.push({ record, tokenIds, lengths: listLengths(record.id, choice) });
    }
    return new EqualLengths(prompts, choice);
  }

  /** Seed of the sampling parameters of all runs, by which the middleware finds samples; engines never get it. */
  get seed(): number {
    return this.choice.seed;
  }

  /** The data set for a run of this job. */
  forJob(job: string): PromptRecord[] {
    return this.prompts.map(({ record, tokenIds, lengths }) => {
      const fields = {
        broomwagon_lengths: lengths,
        broomwagon_prompt_tokens: tokenIds.length,
        broomwagon_seed_of: [this.choice.seed, job, record.id].join('\n'),
      };
      const { engineFields: given } = record.prompt;
      const xargs = { ...(given?.vllm_xargs as object | undefined), ...fields };
      const engineFields = { ...given, ignore_eos: true, vllm_xargs: xargs };
      const prompt: Prompt = { promptTokenIds: tokenIds, engineFields };
      return { prompt, id: record.id, line: record.line, domain: record.domain };
    });
  }

  /** A sink that counts the samples of other lengths, group by group: samples of a group are numbered as they end. */
  watch(sink: ResultSink): ResultSink & { others: number } {
    const lengths = new Map(this.prompts.map(({ record, lengths: all }) => [record.id, all.toSorted(ascending)]));
    const watched = {
      others: 0,
      writeRound: (round: Parameters<ResultSink['writeRound']>[0], lines: readonly ResultLine[]) => {
        for (const [promptId, found] of listByPrompt(lines)) {
          const wanted = lengths.get(promptId)!;
          watched.others += found.toSorted(ascending).filter((length, index) => length !== wanted[index]).length;
        }
        return sink.writeRound(round, lines);
      },
    };
    return watched;
  }
}

const ascending = (one: number, other: number): number => one - other;

/** Lengths of the samples of each prompt. */
function listByPrompt(lines: readonly ResultLine[]): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const { promptId, segments } of lines) {
    const length = segments.reduce((sum, { tokenCount }) => sum + tokenCount, 0);
    found.set(promptId, [...(found.get(promptId) ?? []), length]);
  }
  return found;
}

function listLengths(promptKey: string, { preset, seed, samples, maxTokens }: LengthChoice): number[] {
  return Array.from({ length: samples }, (_, sampleIndex) =>
    Math.min(maxTokens, responseLength(LENGTH_PRESETS[preset], { seed, promptKey, sampleIndex })),
  );
}
