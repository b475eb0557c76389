import { ENGINE_PRESETS } from '@broomwagon/models';
import { describe, expect, it } from 'vitest';
import { readEvents } from './recorded-run';
import { recordedPolicy, recordedSeconds, simulateRecording } from './simulate-recording';

let sequence = 0;
function event(type: string, atMs: number, body: object): string {
  return JSON.stringify({ type, pool: 'p', atMs, sequence: ++sequence, ...body });
}

/** Events of two steps of two groups of two samples under `resume` 1.5; g10 is cut in the first step. */
function recording(): string[] {
  sequence = 40;
  const finished = (groupId: string, sample: number, tokens: number, roundId: string, atMs: number) =>
    event('request.finished', atMs, {
      requestId: `job/${groupId}/${sample}`,
      roundId,
      tokens,
      finishReason: tokens === 900 ? 'length' : 'stop',
    });
  return [
    event('round.opened', 1_000, {
      job: 'job',
      roundId: 'r1',
      step: 1,
      kind: 'short',
      neededGroups: 2,
      newGroups: 3,
      takeGroups: 0,
      policy: 'resume',
    }),
    finished('g1', 0, 100, 'r1', 2_000),
    finished('g1', 1, 120, 'r1', 2_100),
    finished('g2', 1, 300, 'r1', 2_500),
    finished('g2', 0, 200, 'r1', 3_000),
    event('round.completed', 3_000, { job: 'job', roundId: 'r1', step: 1, reason: 'accepted' }),
    event('longtail.requeued', 3_050, { job: 'job', groupId: 'g10', roundId: 'r1', finishedSamples: 0, samples: 2 }),
    event('round.opened', 4_000, {
      job: 'job',
      roundId: 'r2',
      step: 2,
      kind: 'long',
      neededGroups: 2,
      newGroups: 1,
      takeGroups: 1,
      policy: 'resume',
    }),
    finished('g3', 0, 50, 'r2', 5_000),
    finished('g3', 1, 60, 'r2', 5_000),
    finished('g10', 1, 900, 'r2', 6_000),
    finished('g10', 0, 800, 'r2', 7_000),
    event('round.completed', 7_000, { job: 'job', roundId: 'r2', step: 2, reason: 'accepted' }),
  ];
}

describe('a recorded stream of events', () => {
  it('may have more groups than a call may have arguments', () => {
    const [opened, ended, , , , completed] = recording() as [string, string, string, string, string, string];
    const groups = Array.from({ length: 130_000 }, (_, group) => ended.replace('/g1/', `/g${group}/`));
    expect(readEvents([opened, ...groups, completed].join('\n'), 'events')).toMatchObject({
      samples: 1,
      partialGroups: 0,
    });
  });

  it('is read as rounds, and lengths of the groups in the order of their first round', () => {
    const run = readEvents(recording().join('\n'), 'events');
    expect([...run.lengths]).toEqual([
      ['g1', [100, 120]],
      ['g2', [200, 300]],
      ['g10', [800, 900]],
      ['g3', [50, 60]],
    ]);
    expect(run).toMatchObject({ job: 'job', samples: 2, capTokens: 900, missingEvents: 0, partialGroups: 0 });
    expect(recordedSeconds(run, 10)).toEqual([20, 30]);
    expect(recordedPolicy(run)).toEqual({ name: 'resume', overProvision: 1.5 });
  });

  it('is read with a count of missing events, and without partial groups', () => {
    const lines = recording().filter((line) => !line.includes('job/g2/0'));
    const run = readEvents(lines.join('\n'), 'events');
    expect(run).toMatchObject({ missingEvents: 1, partialGroups: 1 });
    expect(run.lengths.has('g2')).toBe(false);
  });

  it('is read for one job only', () => {
    const other = event('round.opened', 1, { job: 'other', roundId: 'x', step: 1, kind: 'short', neededGroups: 9 });
    expect(readEvents([...recording(), other].join('\n'), 'events').rounds).toHaveLength(2);
    expect(() => readEvents([...recording(), other].join('\n'), 'events', 'other')).toThrow('no round of job other');
  });

  it('is read with the escaped ids of job and group in request ids decoded', () => {
    const lines = recording().map((line) =>
      line.replaceAll('job/', 'a~1b~0/').replaceAll('"job":"job"', '"job":"a/b~"'),
    );
    const run = readEvents(lines.map((line) => line.replaceAll('g10', 'g~110')).join('\n'), 'events');
    expect(run).toMatchObject({ job: 'a/b~', samples: 2 });
    expect([...run.lengths.keys()]).toContain('g/10');
  });

  it.each([
    ['not JSON', '{"type":'],
    ['no event', '[]'],
    ['no event', '{"type":"round.opened"}'],
    ['no round was opened', '{"type":"server.changed","atMs":1}'],
  ])('is refused with the fault in the message: %s', (message, text) => {
    expect(() => readEvents(text, 'events')).toThrow(message);
  });

  it('is replayed under another policy with the same lengths', () => {
    const run = readEvents(recording().join('\n'), 'events');
    const fleet = { servers: 1, engine: ENGINE_PRESETS['14b-16k'], promptTokens: 8, speed: 10 };
    const own = simulateRecording(run, fleet, recordedPolicy(run));
    const waiting = simulateRecording(run, fleet, { name: 'wait', overProvision: 1 });
    expect(own.outcome.steps).toHaveLength(2);
    expect(own.outcome.ledger['trained.tokens']).toBe(waiting.outcome.ledger['trained.tokens']);
  });
});
