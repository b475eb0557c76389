/** A sample whose tokens can be scored again. */
export interface Sample {
  /** Number of its line in the results file. */
  line: number;
  promptId: string;
  tokenIds: number[];
  /** Recorded log probabilities; null for a token without one. */
  logprobs: (number | null)[];
  /** Positions of the tokens of each attempt that has any. */
  parts: {
    start: number;
    end: number;
    /** Weight version of all its tokens; undefined if the weights changed during the attempt. */
    version?: number;
    /** Whether the engine continued earlier tokens by their text, which it may have split into other tokens. */
    byText: boolean;
  }[];
}

interface Segment {
  tokenCount: number;
  weightVersion: number;
  toWeightVersion?: number;
  resumedBy?: string;
}

/** Reads a result line; a reason why it cannot be scored. */
export function parseSample(line: number, fields: Record<string, unknown>): Sample | string {
  const { tokenIds, logprobs } = fields;
  if (!Array.isArray(tokenIds) || tokenIds.length === 0) return 'samples without token ids';
  if (!Array.isArray(logprobs) || logprobs.length !== tokenIds.length || logprobs.every((one) => one === null)) {
    return 'samples without log probabilities (--logprobs)';
  }
  let start = 0;
  const parts = (fields.segments as Segment[]).flatMap(({ tokenCount, weightVersion, toWeightVersion, resumedBy }) => {
    if (tokenCount === 0) return [];
    const end = start + tokenCount;
    const version = (toWeightVersion ?? weightVersion) === weightVersion ? weightVersion : undefined;
    const part = { start, end, version, byText: resumedBy === 'text' };
    start = end;
    return [part];
  });
  return { line, promptId: fields.promptId as string, tokenIds, logprobs, parts };
}
