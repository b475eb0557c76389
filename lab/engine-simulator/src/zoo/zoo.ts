import type { EngineDialect } from '@broomwagon/contracts';
import { FAILURE_ENTRIES } from './entries/failures';
import { FIELD_ENTRIES } from './entries/fields';
import { SERVER_ENTRIES } from './entries/servers';
import { TEXT_ENTRIES } from './entries/texts';
import type { ZooEntry } from './zoo-entry';

/**
 * All behaviours, in the order in which they change a stream: fields of tokens, then texts, then ends, then what is
 * sent.
 */
export const ZOO: readonly ZooEntry[] = orderStages([
  ...TEXT_ENTRIES,
  ...FIELD_ENTRIES,
  ...FAILURE_ENTRIES,
  ...SERVER_ENTRIES,
]);

export function zooNames(dialect?: EngineDialect): string[] {
  return ZOO.filter(({ dialects }) => dialect === undefined || dialects.includes(dialect)).map(({ name }) => name);
}

/** @throws RangeError for a name that is none */
export function findEntries(names: readonly string[]): ZooEntry[] {
  const unknown = names.find((name) => !ZOO.some((entry) => entry.name === name));
  if (unknown !== undefined) throw new RangeError(`${unknown} is none of ${zooNames().join(', ')}`);
  return ZOO.filter(({ name }) => names.includes(name));
}

/** Whole texts and groups of tokens are made of what all other behaviours have left. */
function orderStages(entries: ZooEntry[]): ZooEntry[] {
  const last = ['stream-interval', 'sglang-whole', 'sglang-whole-text-new-ids', 'sglang-new'];
  const rank = ({ name }: ZooEntry): number => last.indexOf(name);
  return entries.toSorted((one, other) => rank(one) - rank(other));
}
