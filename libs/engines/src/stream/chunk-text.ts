import { BroomwagonError } from '@broomwagon/contracts';

/** `whole`: each chunk repeats all text of the response. `new`: each chunk has only the text that is new. */
export type TextForm = 'whole' | 'new';

/**
 * Finds the new text of each chunk of a stream. The form of a text is found by the text alone: releases of SGLang send
 * whole texts beside new token ids (0.5.3, 0.5.9 with `--stream-output`), or whole texts only in the chunk of an abort.
 */
export class ChunkText {
  /** All text so far; empty once chunks have only new text: a copy would double the memory of a response. */
  private text = '';
  /** Length and hash of all text so far, once chunks have only new text. */
  private readonly seen = new SeenText();
  /** Form that a chunk has shown; later chunks must agree. */
  private form: TextForm | undefined;

  /** @param expected form in the server info of the engine; decides if a chunk could have either form */
  constructor(private readonly expected?: TextForm) {}

  /** Chunks have only new text. */
  get isNew(): boolean {
    return (this.form ?? this.expected) === 'new';
  }

  /** Takes text that is known to be new. */
  append(text: string): void {
    this.addNew(text);
  }

  /**
   * @param form form of this chunk, if its other fields show it
   * @returns the new text
   * @throws BroomwagonError ENGINE_PROTOCOL if the chunk contradicts earlier ones: some of its text would be guessed
   */
  next(chunk: string, { form, isLast }: { form?: TextForm; isLast: boolean }): string {
    if (chunk === '') return '';
    if (this.form === 'new') return form === 'whole' ? this.addWhole(chunk, isLast) : this.addNew(chunk);
    const before = this.text;
    if (before === '') {
      this.text = chunk;
      return chunk;
    }
    const known = form ?? this.form;
    const isRepeated = chunk.startsWith(before);
    const isAmbiguous = known === undefined && this.expected === undefined && chunk === before && !isLast;
    if (isAmbiguous)
      throw new BroomwagonError(
        'ENGINE_PROTOCOL',
        'The engine sent the same text again, and does not report whether it is new',
      );
    if (known === 'new' || (known === undefined && (!isRepeated || this.expected === 'new'))) {
      // The last chunk of a whole text may lack its stop text.
      if (known === undefined && isLast && before.startsWith(chunk) && this.expected !== 'new') return '';
      return this.addNew(chunk);
    }
    this.form = 'whole';
    if (isRepeated) {
      this.text = chunk;
      return chunk.slice(before.length);
    }
    if (isLast && before.startsWith(chunk)) return '';
    throw contradiction();
  }

  private addNew(chunk: string): string {
    if (this.form !== 'new') this.seen.add(this.text);
    this.form = 'new';
    this.text = '';
    this.seen.add(chunk);
    return chunk;
  }

  /** Takes a whole text after new texts, as the chunk of an abort may have it. The last text may lack its stop text. */
  private addWhole(chunk: string, isLast: boolean): string {
    if (isLast && chunk.length < this.seen.length) return '';
    if (!this.seen.isPrefix(chunk)) throw contradiction();
    return this.addNew(chunk.slice(this.seen.length));
  }
}

function contradiction(): BroomwagonError {
  return new BroomwagonError('ENGINE_PROTOCOL', 'The engine sent a text that does not continue the text before it');
}

/** Length and hash (64 bits) of a text that grows piece by piece; the text itself is not kept. */
class SeenText {
  length = 0;
  private sum = 0;
  private mix = 0;

  add(text: string): void {
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      this.sum = (Math.imul(this.sum, 31) + code) | 0;
      this.mix = Math.imul(this.mix ^ code, 0x01000193);
    }
    this.length += text.length;
  }

  /** Whether this text is a prefix of another text. */
  isPrefix(text: string): boolean {
    if (text.length < this.length) return false;
    const start = new SeenText();
    start.add(text.slice(0, this.length));
    return start.sum === this.sum && start.mix === this.mix;
  }
}
