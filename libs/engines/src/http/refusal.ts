import { BroomwagonError, cutText } from '@broomwagon/contracts';
import { parseRetryAfter, toErrorCode } from './answer-status';
import type { Refusal } from './engine-stream';

/** Maximum characters of an unexpected answer in an error. */
const QUOTE_CHARACTERS = 200;

/** The error of an answer that is no stream. The error body is quoted if it has arrived soon. */
export function toRefusalError(url: string, answer: Refusal): BroomwagonError {
  const { status, contentType, contentEncoding, retryAfter, refusalText } = answer;
  const isCompressed = contentEncoding !== 'identity';
  const said = isCompressed ? '' : quote(refusalText);
  const details = { status, said };
  if (status >= 400) {
    const code = toErrorCode(status);
    const retryAfterMs = code === 'ENGINE_BUSY' ? parseRetryAfter(retryAfter, Date.now()) : undefined;
    return new BroomwagonError(code, `${url} answered ${status}: ${said}`, { details, retryAfterMs });
  }
  const type = contentType || 'no content type';
  const message = isCompressed
    ? `${url} answered with content encoding ${contentEncoding}, although it was asked for identity`
    : `${url} answered ${status} with ${type}, not a stream: ${said}`;
  return new BroomwagonError('ENGINE_PROTOCOL', message, { details });
}

/** Answers of vLLM and SGLang if the prompt and the budget have more tokens than the context of the model. */
const CONTEXT_TOO_LONG = new RegExp(
  [
    'maximum context length',
    "longer than the model's context length",
    'maximum model length',
    'cannot be greater than max_model_len',
  ].join('|'),
  'i',
);

export function isContextTooLong(answer: string): boolean {
  return CONTEXT_TOO_LONG.test(answer);
}

/** The answer of an engine at the end of an error message: «answer», shortened; empty without an answer. */
export function quote(text: string): string {
  const oneLine = text.replaceAll(/\s+/g, ' ').trim();
  if (oneLine === '') return '';
  const cut = cutText(oneLine, QUOTE_CHARACTERS);
  return oneLine.length <= cut.length ? `«${cut}»` : `«${cut}...»`;
}

/** A message for logs: an engine may repeat the prompt or tokens in its answer. */
export function withoutQuote(message: string): string {
  return message.replace(/«[^]*/, '«...»');
}
