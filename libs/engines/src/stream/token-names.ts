/** The names of the tokens of a chunk of `/v1/completions`, and what follows them, as vLLM writes it. */
const NAMES = ',"tokens":[';
const ALTERNATIVES = '],"top_logprobs":[';
const END = ']},"finish_reason":';
/** Begins each further field behind a list. */
const FIELD = '],"';

/**
 * An event without the names of its tokens and of their alternatives, which vLLM sends with log probabilities: the
 * objects of the alternatives take longer to parse than all the rest. Quotes within a text are escaped, so nothing that
 * is searched for is within a text. An event of another form is returned as it is.
 */
export function withoutTokenNames(event: string): string {
  const begin = event.indexOf(NAMES);
  const end = begin < 0 ? -1 : event.indexOf(END, begin);
  if (end < 0) return event;
  const names = event.slice(begin + NAMES.length, end);
  const next = names.indexOf(FIELD);
  // Forwards, since V8 searches backwards character by character.
  const isOnlyNames = next >= 0 && names.startsWith(ALTERNATIVES, next) && !names.includes(FIELD, next + 1);
  return isOnlyNames ? event.slice(0, begin) + event.slice(end + 1) : event;
}
