import type { AttemptId, Segment, SegmentPayload } from '@broomwagon/contracts';

/** Tokens of a sample that one attempt has generated. */
export interface ResultSegment {
  weightVersion: number;
  /** Set when the weights changed during the attempt: its tokens are of versions from `weightVersion` to this one. */
  toWeightVersion?: number;
  serverId: string;
  attempt: AttemptId;
  tokenCount: number;
  text?: string;
  /** How the engine continued the tokens of earlier segments: by token ids, which is exact, or by text. */
  resumedBy?: 'tokens' | 'text';
  /** Fields of the engine's answer that Broomwagon does not read. */
  engineFields?: Record<string, unknown>;
}

/** One line of the results file: one trained sample. */
export interface ResultLine {
  promptId: string;
  sampleIndex: number;
  /** Round that trained the sample. */
  roundId: string;
  /** The whole text, when every segment has one. */
  text?: string;
  /** All token ids, when every segment has them. */
  tokenIds?: number[];
  /**
   * Log probabilities of all tokens, null where an engine returned none; absent when no token has one (`--sampling`
   * with logprobs).
   */
  logprobs?: (number | null)[];
  /** 0 for each token that the model has read and not generated; absent when it has generated all of them. */
  lossMask?: (0 | 1)[];
  finishReason: 'stop' | 'length';
  /** The oldest and the newest weight version of its tokens; without tokens, the version of the round twice. */
  weightVersions: [oldest: number, newest: number];
  /** The stop text or the id of the stop token that ended the sample, if the engine reports it. */
  stopReason?: string | number;
  /** Segments of the attempts, in order. */
  segments: ResultSegment[];
}

/**
 * The line of a sample from its segments and their payloads, in the same order.
 * @param roundWeightVersion weight version of the pool when its round was opened
 */
export function buildResultLine(
  sample: Pick<ResultLine, 'promptId' | 'sampleIndex' | 'roundId' | 'finishReason'>,
  segments: readonly Segment[],
  payloads: readonly SegmentPayload[],
  roundWeightVersion: number,
): ResultLine {
  const { promptId, sampleIndex, roundId, finishReason } = sample;
  /** Returns the parts, or undefined if one is missing: a part of a sample cannot be trained. */
  const ofAll = <T>(parts: readonly (T | undefined)[]): T[] | undefined =>
    parts.every((part) => part !== undefined) ? (parts as T[]) : undefined;
  return {
    promptId,
    sampleIndex,
    roundId,
    text: ofAll(payloads.map(({ text }) => text))?.join(''),
    tokenIds: ofAll(payloads.map(({ tokenIds }) => tokenIds))?.flat(),
    logprobs: joinLogprobs(segments, payloads),
    lossMask: payloads.some(({ lossMask }) => lossMask)
      ? ofAll(payloads.map(({ tokenIds, lossMask }) => lossMask ?? tokenIds?.map(() => 1 as const)))?.flat()
      : undefined,
    finishReason,
    weightVersions: findVersionSpan(segments) ?? [roundWeightVersion, roundWeightVersion],
    stopReason: payloads.at(-1)?.stopReason,
    segments: segments.map(({ weightVersion, toWeightVersion, serverId, attempt, tokenCount, resumedBy }, index) => ({
      weightVersion,
      toWeightVersion,
      serverId,
      attempt,
      tokenCount,
      text: payloads[index]!.text,
      resumedBy: index === 0 ? undefined : resumedBy === 'text' ? 'text' : 'tokens',
      engineFields: payloads[index]!.engineFields,
    })),
  };
}

/** Oldest and newest weight version; undefined without segments. */
function findVersionSpan(segments: readonly Segment[]): ResultLine['weightVersions'] | undefined {
  if (segments.length === 0) return undefined;
  const oldest = segments.map(({ weightVersion }) => weightVersion);
  const newest = segments.map(({ weightVersion, toWeightVersion = weightVersion }) => toWeightVersion);
  return [Math.min(...oldest), Math.max(...newest)];
}

/** Log probabilities of all tokens: null for tokens of a segment without any; `[]` without tokens. */
function joinLogprobs(segments: readonly Segment[], payloads: readonly SegmentPayload[]): ResultLine['logprobs'] {
  const hasTokens = segments.some(({ tokenCount }) => tokenCount > 0);
  if (hasTokens && payloads.every(({ logprobs }) => logprobs === undefined)) return undefined;
  return payloads.flatMap(({ logprobs }, index) => logprobs ?? Array<null>(segments[index]!.tokenCount).fill(null));
}

/** Receives trained samples. */
export interface ResultSink {
  /**
   * Writes all samples of one round, before the round is closed. From then on its step is trained, also if Redis loses
   * it.
   */
  writeRound(round: { roundId: string; step: number }, lines: readonly ResultLine[]): Promise<void>;
}
