import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isBroomwagonError } from '@broomwagon/contracts';
import { ManagedProcess } from '@broomwagon/testing';
import { Operations } from '../../lab/reference-trainer/src/loop/operations';
import { TrainerLoop } from '../../lab/reference-trainer/src/loop/trainer-loop';
import type { ResultLine } from '../../lab/reference-trainer/src/results/result-line';
import { ResultsFile } from '../../lab/reference-trainer/src/results/results-file';
import { dataSet, SEED, type TestPrompt } from '../system/data-set';
import { toOptions, type TestSystem } from '../system/test-system';

const CALL_DEADLINE_MS = 60_000;
const GROUPS_PER_STEP = 6;
const OVER_PROVISION = 1.5;
/** Number of last lines of the log that are reported for a trainer that ended with an error. */
const ERROR_LINES = 1_000;

/** Results that one trainer holds when it has ended, and its error. */
export interface TrainerEnd {
  held: Pick<ResultLine, 'promptId' | 'sampleIndex' | 'tokenIds' | 'segments'>[];
  /** Code, message and details of the error that ended it; undefined when it ended as if all were well. */
  error?: string;
}

/** The prompts that the example of docs/protocol makes up. */
export function examplePrompts(count: number, samples: number): TestPrompt[] {
  return dataSet(count, samples).map((prompt, index) => ({
    ...prompt,
    id: `prompt-${index}`,
    prompt: { text: `Problem ${index}: what is ${index} times ${index + 1}? Think step by step.` },
  }));
}

/** Members of a system that a trainer needs. */
type Target = Pick<TestSystem, 'client' | 'folder' | 'natsUrl' | 'pool'>;

/** Trains the example prompts with one of our trainers. @throws Error if the signal ends the trainer */
export type Trainer = (
  system: Target,
  job: string,
  prompts: readonly TestPrompt[],
  signal: AbortSignal,
) => Promise<TrainerEnd>;

export const TRAINERS: Record<'reference' | 'plain', Trainer> = { reference, plain };

/** The loop of `npm start`, with its file of results. */
async function reference(
  system: Target,
  job: string,
  prompts: readonly TestPrompt[],
  signal: AbortSignal,
): Promise<TrainerEnd> {
  const file = join(mkdtempSync(join(system.folder, 'trainer-')), 'results.jsonl');
  const sink = await ResultsFile.create(file);
  let error: string | undefined;
  const loop = new TrainerLoop(
    new Operations(system.client, system.pool, { deadlineMs: CALL_DEADLINE_MS, signal }),
    {
      job,
      prompts,
      samples: prompts[0]!.samples,
      maxTokens: 16_384,
      sampling: { seed: SEED },
      groupsPerStep: GROUPS_PER_STEP,
      policy: { name: 'resume', overProvision: OVER_PROVISION },
      lookMs: 25,
      signal,
    },
    { sink },
  );
  try {
    await loop.run();
    // In `npm start` the checker of the trainer reports missing groups.
    if (loop.missing.length > 0) error = `Not trained: ${loop.missing.join(' ')}`;
  } catch (thrown) {
    if (!isBroomwagonError(thrown)) throw thrown;
    error = `${thrown.code}: ${thrown.message} ${JSON.stringify(thrown.details ?? {})}`;
  } finally {
    await sink.close();
  }
  return { held: readLines(file), error };
}

function readLines(file: string): ResultLine[] {
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as ResultLine);
}

/** Trains with docs/protocol/examples/trainer.mjs in a process of its own. */
async function plain(
  system: Target,
  job: string,
  prompts: readonly TestPrompt[],
  signal: AbortSignal,
): Promise<TrainerEnd> {
  const out = mkdtempSync(join(system.folder, 'trainer-'));
  const trainer = await startExampleTrainer(system, out, {
    job,
    prompts: prompts.length,
    samples: prompts[0]!.samples,
    groups: GROUPS_PER_STEP,
    'over-provision': OVER_PROVISION,
    seed: SEED,
  });
  signal.addEventListener('abort', () => trainer.kill('SIGKILL'));
  const { code } = await trainer.exited;
  signal.throwIfAborted();
  return { held: heldIn(out), error: code === 0 ? undefined : await trainer.logTail(ERROR_LINES) };
}

/** Starts docs/protocol/examples/trainer.mjs. @param out the folder of its files and its log */
export async function startExampleTrainer(
  system: Target,
  out: string,
  settings: Record<string, string | number>,
  environment: Record<string, string> = { NATS_URL: system.natsUrl },
): Promise<ManagedProcess> {
  const trainer = new ManagedProcess({
    name: 'example-trainer',
    command: [
      process.execPath,
      join('docs', 'protocol', 'examples', 'trainer.mjs'),
      ...toOptions({ pool: system.pool, out, ...settings }),
    ],
    environment,
    logFile: join(out, `trainer-${randomUUID()}.log`),
  });
  await trainer.start();
  return trainer;
}

interface StepFile {
  groups: { groupId: string; samples: { sampleIndex: number; tokens: number[]; segments: ResultLine['segments'] }[] }[];
}

/** Reads the results that the example trainer holds in its folder. */
export function heldIn(folder: string): TrainerEnd['held'] {
  const steps = readdirSync(folder).filter((file) => /^step-.*\.json$/.test(file));
  const groups = steps.flatMap((file) => (JSON.parse(readFileSync(join(folder, file), 'utf8')) as StepFile).groups);
  return groups.flatMap(({ groupId, samples }) =>
    samples.map(({ sampleIndex, tokens, segments }) => ({
      promptId: groupId,
      sampleIndex,
      tokenIds: tokens,
      segments,
    })),
  );
}
