import { LIMITS } from '@broomwagon/contracts';
import type { GenerationResult, TokenIncrement } from '@broomwagon/engines';
import { isCount } from '../fields/read-fields';
import type { RestoredTokens } from './response-parts';
import { reportedSpans, type WeightSpan } from './weight-spans';

/** Tokens [start, end) of a response that a call has generated, and the weights of the lease of this call. */
interface CallTokens {
  start: number;
  end: number;
  weightVersion: number | string;
}

/** Reports of engines on one response, over all its calls: weights, counts of the prompt, and further fields. */
export class EngineReport {
  private weights: WeightSpan[] = [];
  private hasVersions = true;
  private promptCount: number | undefined;
  private cachedCount: number | undefined;
  private otherFields: Readonly<Record<string, unknown>> = {};
  private changeCount = 0;

  /** @param promptIds prompt token ids of the request */
  constructor(private promptIds: number[] | undefined) {}

  get spans(): readonly Readonly<WeightSpan>[] {
    return this.weights;
  }

  /** False while the engine has not reported the weights of a span: then the version of the span is from the lease. */
  get isVersionReported(): boolean {
    return this.hasVersions;
  }

  /** Number of tokens of the prompt, without tokens of the response. */
  get promptTokens(): number | undefined {
    return this.promptCount;
  }

  /** Prompt token ids, from the request or as reported by the first engine. */
  get promptTokenIds(): number[] | undefined {
    return this.promptIds;
  }

  get cachedTokens(): number | undefined {
    return this.cachedCount;
  }

  /** Fields of the last answer of the engine that the gateway does not read. */
  get fields(): Readonly<Record<string, unknown>> {
    return this.otherFields;
  }

  /** Counts changes of spans, usage or fields, except changes by {@link setField} at the end of the response. */
  get changes(): number {
    return this.changeCount;
  }

  /**
   * Takes the size and the ids of the prompt, as a call reports them with its first tokens.
   * @param start number of tokens of earlier calls; the prompt of this call contains these tokens
   */
  takeIncrement({ promptTokens, promptTokenIds }: TokenIncrement, start: number): void {
    if (start === 0) this.takePromptIds(promptTokenIds);
    if (this.promptCount !== undefined || !isCount(promptTokens, start, LIMITS.maxTokens)) return;
    this.promptCount = promptTokens! - start;
    this.changeCount += 1;
  }

  /** Takes prompt token ids. The ids of the request, or of the first report, stay. */
  takePromptIds(promptTokenIds: number[] | undefined): void {
    this.promptIds ??= promptTokenIds;
  }

  /**
   * Takes the report at the end of a call: weights, usage, further fields.
   * @param result absent if the call has failed
   */
  takeResult(result: Pick<GenerationResult, 'engineFields' | 'usage'> | undefined, made: CallTokens): void {
    this.changeCount += 1;
    const fields = result?.engineFields ?? {};
    const { weight_version: scalar, weight_versions: list } = fields;
    this.takeWeights(list, scalar, made);
    if (result === undefined) return;
    this.otherFields = scalar === undefined && list === undefined ? fields : withoutWeights(fields);
    this.takeUsage(result.usage, made.start);
  }

  /** Sets a field of the answer at the end of the response. */
  setField(name: string, value: unknown): void {
    this.otherFields = Object.assign({}, this.otherFields, { [name]: value });
  }

  /** Takes the reports on tokens that another replica has generated. */
  restore({ spans, isVersionReported, promptTokens, promptTokenIds, whole }: RestoredTokens): void {
    this.weights = [...spans];
    this.hasVersions = isVersionReported;
    this.promptCount = promptTokens;
    this.takePromptIds(promptTokenIds);
    if (whole !== undefined) {
      this.cachedCount = whole.cachedTokens;
      this.otherFields = whole.engineFields;
    }
    this.changeCount += 1;
  }

  /** Removes the weights of all tokens: the response starts again. */
  clearSpans(): void {
    this.weights = [];
  }

  private takeWeights(list: unknown, scalar: unknown, { start, end, weightVersion }: CallTokens): void {
    const spans = reportedSpans(list, scalar, end - start);
    for (const span of spans) this.addSpan(span.version, start + span.start, start + span.end);
    if (spans.length > 0 || end <= start) return;
    this.addSpan(String(weightVersion), start, end);
    this.hasVersions = false;
  }

  private takeUsage(usage: GenerationResult['usage'], start: number): void {
    if (!isCount(usage?.promptTokens, start, LIMITS.maxTokens)) return;
    // The prompt of a continued call contains the tokens of the calls before.
    this.promptCount = usage!.promptTokens - start;
    const cachedTokens = usage!.cachedTokens ?? 0;
    if (isCount(cachedTokens, 0, LIMITS.maxTokens)) this.cachedCount ??= Math.min(cachedTokens, this.promptCount);
  }

  private addSpan(version: string, start: number, end: number): void {
    const last = this.weights.at(-1);
    if (last?.version === version) last.end = end;
    else if (end > start) this.weights.push({ version, start, end });
  }
}

function withoutWeights({ weight_version: _scalar, weight_versions: _list, ...others }: Record<string, unknown>) {
  return others;
}
