import type { EngineDialect } from '@broomwagon/contracts';
import { FAILURE_ENTRIES } from './entries/failures';
import { FIELD_ENTRIES } from './entries/fields';
import { SERVER_ENTRIES } from './entries/servers';
import { TEXT_ENTRIES } from './entries/texts';
import { recordedEntries } from './recorded/recording';
import type { ZooEntry } from './zoo-entry';

/** All behaviours, in the order in which they change a stream: texts, fields, ends. */
export const ZOO: readonly ZooEntry[] = [...TEXT_ENTRIES, ...FIELD_ENTRIES, ...FAILURE_ENTRIES, ...SERVER_ENTRIES];

export function zooNames(dialect?: EngineDialect): string[] {
  return ZOO.filter(({ dialects }) => dialect === undefined || dialects.includes(dialect)).map(({ name }) => name);
}

/** Finds entries of the zoo and recordings by name. @throws RangeError for an unknown name */
export function findEntries(names: readonly string[]): ZooEntry[] {
  const hasRecorded = names.some((name) => !ZOO.some((entry) => entry.name === name));
  const entries = hasRecorded ? [...ZOO, ...recordedEntries()] : ZOO;
  const unknown = names.find((name) => !entries.some((entry) => entry.name === name));
  if (unknown !== undefined) throw new RangeError(`${unknown} is none of ${zooNames().join(', ')}`);
  return entries.filter(({ name }) => names.includes(name));
}
