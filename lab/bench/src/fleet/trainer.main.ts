import { randomUUID } from 'node:crypto';
import { connectNats, MessagingClient, TypedClient } from '@broomwagon/messaging';
import type { Prompt } from '@broomwagon/contracts';
import { GroupSubmitter } from '../../../reference-trainer/src/loop/group-submitter';
import { Operations } from '../../../reference-trainer/src/loop/operations';
import { ResultsReader } from '../../../reference-trainer/src/loop/results-reader';
import { answerParent } from '../child';
import { LONG_MS } from '../fill-pool';

/** Requests of a round, in groups of `samples`. */
export interface RoundShape {
  pool: string;
  /** Name of the job; each round of a phase is a round of this job. */
  job: string;
  groups: number;
  samples: number;
  maxTokens: number;
  prompt: Prompt;
}

export type TrainerQuestion =
  | { kind: 'connect'; natsUrl: string }
  /** Opens a round, submits its groups, and leaves it open. */
  | ({ kind: 'open' } & RoundShape)
  /** Cancels the round that was left open, and waits until its requests have ended. */
  | { kind: 'cancel'; pool: string; job: string }
  /** Opens so many rounds, one after the other, reads the tokens of their results, and closes them. */
  | ({ kind: 'train'; rounds: number } & RoundShape);

export interface TrainerAnswer {
  /** Number of samples whose tokens were read. */
  samples: number;
  /** Tokens of these samples. */
  tokens: number;
}

const RESULTS_WAIT_MS = 1_000;
const DEADLINE_MS = 60_000;
const SETTLE_MS = 120_000;
const SAMPLING = { temperature: 1, logprobs: true };
const epochs = new Map<string, string>();
const steps = new Map<string, number>();
/** Job of the round that a phase has left open: a job whose round was cancelled has trained no step. */
const opened = new Map<string, string>();
const operations = new Map<string, Operations>();
let client: TypedClient;

function createOperations(pool: string): Operations {
  const known = operations.get(pool) ?? new Operations(client, pool, { deadlineMs: DEADLINE_MS });
  operations.set(pool, known);
  return known;
}

async function open({ pool, job, groups, samples, maxTokens, prompt }: RoundShape): Promise<string> {
  const calls = createOperations(pool);
  const step = (steps.get(job) ?? 0) + 1;
  steps.set(job, step);
  const roundId = `${job}-${step}`;
  const opened = await calls.call('round.open', {
    job,
    roundId,
    planId: roundId,
    step,
    kind: 'short',
    neededGroups: groups,
    takeGroups: 0,
    newGroups: groups,
    policy: { name: 'wait' },
    weightVersion: 0,
    orphanAfterMs: LONG_MS,
    trainerEpoch: epochs.get(job),
  });
  epochs.set(job, opened.trainerEpoch);
  const submitter = new GroupSubmitter(calls, job, { samples, maxTokens, sampling: SAMPLING });
  const prompts = Array.from({ length: groups }, (_, index) => ({
    id: `${roundId}-${index}`,
    line: index + 1,
    prompt,
  }));
  await submitter.submit(roundId, opened.trainerEpoch, prompts);
  return roundId;
}

async function train(question: Extract<TrainerQuestion, { kind: 'train' }>): Promise<TrainerAnswer> {
  const { pool, job } = question;
  const calls = createOperations(pool);
  const sum = { samples: 0, tokens: 0 };
  for (let round = 0; round < question.rounds; round++) {
    const roundId = await open(question);
    const trainerEpoch = epochs.get(job)!;
    const results = new ResultsReader(calls, job, { roundId, weightVersion: 0 });
    while (!results.complete) await results.readNew(trainerEpoch, RESULTS_WAIT_MS);
    sum.samples += results.lines.length;
    for (const { tokenIds } of results.lines) sum.tokens += tokenIds!.length;
    await calls.call('round.close', { job, roundId, trainerEpoch, ...results.proof });
  }
  return sum;
}

async function cancel(pool: string, job: string): Promise<void> {
  const calls = createOperations(pool);
  const round = { job, roundId: `${job}-${steps.get(job)}`, trainerEpoch: epochs.get(job)! };
  await calls.call('round.cancel', { ...round, mode: 'drop' });
  const endsAtMs = performance.now() + SETTLE_MS;
  while (!(await calls.call('round.status', round)).settled) {
    if (performance.now() > endsAtMs) throw new Error(`The round of ${job} is not settled`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** The trainer of `bench fleet`, in a process of its own, whose CPU time counts too. */
answerParent<TrainerQuestion, TrainerAnswer>(async (question) => {
  if (question.kind === 'train') return train(question);
  if (question.kind === 'connect') {
    client = new TypedClient(new MessagingClient(await connectNats({ url: question.natsUrl })));
  } else if (question.kind === 'open') {
    const job = `${question.job}-${randomUUID().slice(0, 8)}`;
    opened.set(question.job, job);
    await open({ ...question, job });
  } else await cancel(question.pool, opened.get(question.job)!);
  return { samples: 0, tokens: 0 };
});
