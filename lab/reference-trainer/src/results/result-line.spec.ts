import type { Segment, SegmentPayload } from '@broomwagon/contracts';
import { expect, it } from 'vitest';
import { buildResultLine } from './result-line';

const sample = { promptId: 'p', sampleIndex: 1, roundId: 'r', finishReason: 'stop' } as const;
const ROUND_VERSION = 7;
const build = (segments: Segment[], payloads: SegmentPayload[]) =>
  buildResultLine(sample, segments, payloads, ROUND_VERSION);
const segment = (more: Partial<Segment>) =>
  ({ attempt: '1-a', serverId: 's', weightVersion: 3, tokenCount: 2, ref: 'x', ...more }) as Segment;

it('keeps logprobs, and the text and origin of every segment', () => {
  const segments = [segment({}), segment({ attempt: '2-a', serverId: 't', weightVersion: 4, toWeightVersion: 5 })];
  const line = build(segments, [
    { tokenIds: [1, 2], text: 'ab', logprobs: [-0.1, -0.2] },
    { tokenIds: [3, 4], text: 'cd', logprobs: [-0.3, -0.4], engineFields: { routed_experts: [[1]] } },
  ]);
  expect(line).toEqual({
    ...sample,
    weightVersions: [3, 5],
    text: 'abcd',
    tokenIds: [1, 2, 3, 4],
    logprobs: [-0.1, -0.2, -0.3, -0.4],
    segments: [
      { weightVersion: 3, serverId: 's', attempt: '1-a', tokenCount: 2, text: 'ab' },
      {
        weightVersion: 4,
        toWeightVersion: 5,
        serverId: 't',
        attempt: '2-a',
        tokenCount: 2,
        text: 'cd',
        resumedBy: 'tokens',
        engineFields: { routed_experts: [[1]] },
      },
    ],
  });
});

it('leaves out ids and text that not every segment has, and marks a segment that was resumed by text', () => {
  const line = build(
    [segment({}), segment({ resumedBy: 'text' })],
    [{ text: 'a', tokenIds: [1, 2], logprobs: [0, 0] }, { text: 'b' }],
  );
  expect(line).toMatchObject({ text: 'ab', segments: [{}, { resumedBy: 'text' }] });
  expect(line.tokenIds).toBeUndefined();
  expect(line.logprobs).toEqual([0, 0, null, null]);
});

it('has empty lists and the version of its round without tokens; no log probabilities when none was requested', () => {
  const versions = [ROUND_VERSION, ROUND_VERSION];
  expect(build([], [])).toMatchObject({ text: '', tokenIds: [], logprobs: [], weightVersions: versions });
  expect(build([segment({})], [{ tokenIds: [1, 2] }]).logprobs).toBeUndefined();
});

it('masks tokens that the model has read, over all segments', () => {
  const payloads = [{ tokenIds: [1, 2] }, { tokenIds: [3, 4], lossMask: [0, 1] }] as SegmentPayload[];
  expect(build([segment({}), segment({})], payloads).lossMask).toEqual([1, 1, 0, 1]);
  expect(build([segment({})], payloads.slice(0, 1)).lossMask).toBeUndefined();
});
