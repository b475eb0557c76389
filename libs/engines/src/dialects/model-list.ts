import { LIMITS } from '@broomwagon/contracts';
import { parseObject } from '../http/engine-http';

/** Last entry of a list: the engine has more models than the list, and may have any model. */
export const ANY_MODEL = '*';

/** A model or adapter that an engine lists. */
export interface ModelCard {
  id: string;
  maxModelTokens?: number;
}

/** The cards of an answer of `/v1/models`; undefined if it is no list of models, or an empty one. */
export function readModelCards(text: string): ModelCard[] | undefined {
  const cards = parseObject(text)?.data as { id?: unknown; max_model_len?: unknown }[] | undefined;
  if (!Array.isArray(cards) || typeof cards[0]?.id !== 'string') return undefined;
  return cards.map(({ id, max_model_len: length }) => ({
    id: String(id),
    maxModelTokens: typeof length === 'number' ? length : undefined,
  }));
}

/** Names that can be stored one on a line. {@link ANY_MODEL} replaces the first other name, and all names after it. */
export function toModelList(cards: readonly ModelCard[]): string[] {
  const kept: string[] = [];
  let leftBytes = LIMITS.modelListBytes;
  for (const id of new Set(cards.map((card) => card.id))) {
    leftBytes -= Buffer.byteLength(id) + 1;
    const isName = id !== '' && id.length <= LIMITS.modelNameCharacters && !/\p{Cc}/u.test(id);
    if (!isName || leftBytes < 0) return [...kept, ANY_MODEL];
    kept.push(id);
  }
  return kept;
}
