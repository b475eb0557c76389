import { BroomwagonError } from '@broomwagon/contracts';
import type { TrajectoryRead, TurnRecord } from '@broomwagon/state';
import { expect, it } from 'vitest';
import { readTraces } from './rllm-traces';

const buildTurn = (turn: number, parent?: number) =>
  ({ turn, parent, id: `r${turn}`, ref: `${turn}`, weights: [], finishReason: 'stop' }) as unknown as TurnRecord;
const about = { sessionId: 's', tokenId: '', job: 'j', createdAtMs: 1_000 };

/** Traces of turns whose payloads are their own numbers. */
async function collectTraces(read: TrajectoryRead, lost: string[] = [], limit = 100) {
  const reads: string[] = [];
  const get = (ref: string): Promise<Buffer> => {
    reads.push(ref);
    if (lost.includes(ref)) return Promise.reject(new BroomwagonError('PAYLOAD_NOT_FOUND', 'gone'));
    return Promise.resolve(Buffer.from(JSON.stringify({ promptTokenIds: [], tokenIds: [Number(ref)] })));
  };
  const traces: Record<string, unknown>[] = [];
  for await (const trace of readTraces({ about, ...read }, get, { limit }))
    traces.push(trace as Record<string, unknown>);
  return { reads, traces, places: traces.map(({ metadata }) => metadata) };
}

it('returns traces in the order of the turns, each with its whole prompt, and reads each payload once', async () => {
  const { traces, reads } = await collectTraces({
    turns: [buildTurn(1), buildTurn(2), buildTurn(3, 1), buildTurn(4, 3)],
  });
  expect(traces.map((one) => [one.metadata, one.prompt_token_ids, one.completion_token_ids])).toEqual([
    [{ turn: 1, response_id: 'r1' }, [], [1]],
    [{ turn: 2, response_id: 'r2' }, [], [2]],
    [{ turn: 3, response_id: 'r3' }, [1], [3]],
    [{ turn: 4, response_id: 'r4' }, [1, 3], [4]],
  ]);
  expect(reads).toEqual(['1', '2', '3', '4']);
});

it('returns a trace with the reason for each missing turn, under the number that its client received', async () => {
  const missing = [
    { turn: 2, startedAtMs: 1, reason: 'ENGINE_ERROR' },
    { turn: 6_001, startedAtMs: 1, reason: 'SET_BACK' },
    { turn: 6_003, startedAtMs: 1, reason: 'UNFINISHED' },
  ];
  const turns = [buildTurn(1), buildTurn(3, 1), buildTurn(4), buildTurn(6, 4)];
  const read = { turns, missing, setBacks: [{ after: 4, offset: 6_000 }] };
  const { places } = await collectTraces(read, ['1']);
  expect(places).toEqual([
    { turn: 1, missing: 'PAYLOAD_NOT_FOUND' },
    { turn: 2, missing: 'ENGINE_ERROR' },
    { turn: 3, missing: 'PARENT_MISSING' },
    { turn: 4, response_id: 'r4' },
    { turn: 6_001, missing: 'SET_BACK' },
    { turn: 6_003, missing: 'UNFINISHED' },
    { turn: 6_006, response_id: 'r6' },
  ]);
  for (let limit = 0; limit < 8; limit += 1) {
    expect((await collectTraces(read, ['1'], limit)).places).toEqual(places.slice(0, limit));
  }
});
