import { BroomwagonError } from '@broomwagon/contracts';

/** `whole`: each chunk repeats all text of the response. `new`: each chunk has only the text that is new. */
export type TextForm = 'whole' | 'new';

/**
 * The new text of each chunk of a stream. Texts are judged by themselves, since releases of SGLang send whole texts
 * beside new token ids (0.5.3, 0.5.9 with `--stream-output`), and whole texts only in the chunk of an abort.
 */
export class ChunkText {
  /** All text so far. */
  private text = '';
  /** Shown by a chunk; then every later chunk must agree. */
  private form: TextForm | undefined;

  /** @param expected form in the server info of the engine; decides where a chunk could have either form */
  constructor(private readonly expected?: TextForm) {}

  /** Chunks have only new text. */
  get isNew(): boolean {
    return (this.form ?? this.expected) === 'new';
  }

  /** Takes text that is known to be new. */
  append(text: string): void {
    this.text += text;
  }

  /**
   * @param form form of this chunk, if its other fields show it
   * @returns the new text
   * @throws BroomwagonError ENGINE_PROTOCOL if the chunk contradicts earlier ones: some of its text would be guessed
   */
  next(chunk: string, { form, isLast }: { form?: TextForm; isLast: boolean }): string {
    const before = this.text;
    if (chunk === '') return '';
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
      this.form = 'new';
      this.text += chunk;
      return chunk;
    }
    this.form = 'whole';
    if (isRepeated) {
      this.text = chunk;
      return chunk.slice(before.length);
    }
    if (isLast && before.startsWith(chunk)) return '';
    throw new BroomwagonError('ENGINE_PROTOCOL', 'The engine sent a text that does not continue the text before it');
  }
}
