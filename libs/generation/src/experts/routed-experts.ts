import type { EngineDialect, Prompt } from '@broomwagon/contracts';
import { OpaqueText, type GenerationResult } from '@broomwagon/engines';
import { type ByteRange, joinedBase64 } from './base64-bytes';
import { type ExpertRows, buildFileHeader, parseRows } from './expert-rows';

/** Field of engines with the experts of a mixture of experts that served each token. */
export const EXPERTS_FIELD = 'routed_experts';
/** Field of SGLang with the first row of a call, in requests and answers. */
export const EXPERTS_START = 'routed_experts_start_len';

/** Experts as SkyRL reads them. */
export interface PackedExperts {
  /** Base64 of the numbers, in the order of C. */
  data: OpaqueText;
  /** Tokens, layers, experts of a token. */
  shape: number[];
  dtype: string;
}

/** Types of numbers by their names in an .npy file. */
const DTYPES: Record<string, string> = { '|u1': 'uint8', '<u2': 'uint16', '<i4': 'int32' };

/** Experts that a call has reported at its end. */
export interface ReportedExperts {
  reported: unknown;
  /** Tokens of prompt and response in the engine at the end of the call, if it has counted them. */
  engineTokens?: number;
  /** Number of tokens of prompt and response that were kept. */
  keptTokens: number;
  /** First row that the call was asked for. */
  from: number;
}

/**
 * The routed experts of a response, over all its calls: a row for each token of prompt and response except the last
 * token. Each call reports its whole sequence, prompt included, but only rows after the known rows are taken: the
 * experts of earlier tokens were chosen in earlier calls.
 */
export class RoutedExperts {
  /** First row of the sequence that the client has asked for. */
  readonly firstRow: number;
  /** Experts of the last call, unchanged; undefined if it has reported none. */
  private last: unknown;
  /** Known rows, from `firstRow` on. */
  private ranges: ByteRange[] = [];
  private rows: ExpertRows | undefined;
  /** Row of the sequence behind the known rows. */
  private end = 0;
  /** The known rows are from several calls, or cover only a part of the tokens of the last call. */
  private isJoined = false;

  private constructor(firstRow: unknown) {
    this.firstRow = typeof firstRow === 'number' ? firstRow : 0;
  }

  /** @returns undefined if the request asks for no experts */
  static of({ engineFields }: Prompt): RoutedExperts | undefined {
    return engineFields?.return_routed_experts === true ? new RoutedExperts(engineFields[EXPERTS_START]) : undefined;
  }

  /** First row that the next call has to report; vLLM always reports all rows. */
  nextRow(dialect: EngineDialect): number {
    return dialect === 'sglang' && this.rows !== undefined && this.rows.file === undefined ? this.end : this.firstRow;
  }

  /** The prompt of the next call: rows that are known are not reported again. */
  ask(prompt: Prompt, dialect: EngineDialect): Prompt {
    const row = this.nextRow(dialect);
    if (row === this.firstRow) return prompt;
    return { ...prompt, engineFields: { ...prompt.engineFields, [EXPERTS_START]: row } };
  }

  /** The response begins again without its tokens. */
  clear(): void {
    this.ranges = [];
    this.rows = undefined;
    this.last = undefined;
    this.isJoined = false;
  }

  take({ reported, engineTokens = 0, keptTokens, from }: ReportedExperts): void {
    this.last = reported;
    if (!(reported instanceof OpaqueText)) return;
    if (this.rows !== undefined && reported.length === 0) {
      // The call had no tokens, and no row behind the known rows.
      this.isJoined = true;
      return;
    }
    const { firstRow } = this;
    const end = engineTokens - 1;
    const next = this.rows && parseRows(reported, [end - from, end - firstRow], this.rows);
    const isNext = next !== undefined && end >= this.end && isBetween(end - next.rows, firstRow, this.end);
    const rows = isNext ? next : parseRows(reported, [end - firstRow]);
    const begin = end - (rows?.rows ?? 0);
    if (!isNext) {
      this.clear();
      // The rows of the text are not known: experts of the whole sequence are passed on as they are.
      if (from === firstRow) this.last = reported;
      if (rows === undefined || begin !== firstRow) return;
    }
    const { width, dataAt } = rows!;
    const known = isNext ? this.end - begin : 0;
    this.isJoined = isNext;
    this.rows = rows;
    this.ranges.push({ text: reported, from: dataAt + known * width, to: dataAt + rows!.rows * width });
    this.end = end;
    this.cut(keptTokens - 1);
  }

  /** Removes the rows of tokens that were not kept. */
  private cut(end: number): void {
    for (let left = (this.end - end) * this.rows!.width; left > 0;) {
      this.isJoined = true;
      const last = this.ranges.pop();
      if (last === undefined) return this.clear();
      const kept = last.to - last.from - left;
      if (kept > 0) this.ranges.push({ ...last, to: last.from + kept });
      left = -kept;
    }
    this.end = Math.min(this.end, end);
  }

  /**
   * Experts of the whole response as its engines report them; undefined if rows are missing, because the last call has
   * ended without a report.
   * @param tokens number of tokens of prompt and response
   */
  async whole(tokens: number): Promise<unknown> {
    const { rows, ranges, last } = this;
    if (rows === undefined || (!this.isJoined && last !== undefined)) return last;
    if (this.end !== tokens - 1) return undefined;
    return joinedBase64(ranges, rows.file && buildFileHeader({ ...rows.file, shape: this.shape }));
  }

  /**
   * Experts of the whole response as SkyRL reads them; null if rows are missing, or their shape is not known (SGLang).
   */
  async packed(tokens: number): Promise<PackedExperts | null> {
    const { rows, ranges, last } = this;
    if (isPacked(last)) return last;
    const dtype = DTYPES[rows?.file?.descr ?? ''];
    if (dtype === undefined || this.end !== tokens - 1) return null;
    return { data: await joinedBase64(ranges), shape: this.shape, dtype };
  }

  private get shape(): number[] {
    return [this.end - this.firstRow, ...this.rows!.file!.shape.slice(1)];
  }
}

function isBetween(value: number, least: number, most: number): boolean {
  return value >= least && value <= most;
}

function isPacked(reported: unknown): reported is PackedExperts {
  if (typeof reported !== 'object' || reported === null) return false;
  const { data, shape, dtype } = reported as Partial<Record<keyof PackedExperts, unknown>>;
  return typeof data === 'string' && Array.isArray(shape) && typeof dtype === 'string';
}

/**
 * Takes the routed experts of a call out of the fields of the engine.
 * @param keptTokens tokens of the call that its response has kept
 * @param from first row that the call was asked for
 */
export function takeExperts(
  experts: RoutedExperts,
  result: GenerationResult | undefined,
  keptTokens: number,
  from: number,
): void {
  const { engineFields = {}, usage } = result ?? {};
  const { [EXPERTS_FIELD]: reported } = engineFields;
  delete engineFields[EXPERTS_FIELD];
  experts.take({
    reported,
    engineTokens: usage && usage.promptTokens + usage.completionTokens,
    // The prompt of a continued call contains the tokens of earlier calls.
    keptTokens: (usage?.promptTokens ?? 0) + keptTokens,
    from,
  });
}
