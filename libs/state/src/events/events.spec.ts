import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = 'libs/state/src';
/** Event types that a transition composes, by the constant with which their names begin (`weights/end.lua`). */
const COMPOSED: Record<string, string[]> = { 'weights.': ['weights.committed', 'weights.rolled-back'] };

it('adds the events that the published schema describes, and no others', () => {
  const lua = readdirSync(ROOT, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.lua'));
  const added = lua.flatMap((file) =>
    [...readFileSync(join(ROOT, file), 'utf8').matchAll(/Events\.add\(tx, '([^']+)'/g)].map(([, type]) => type!),
  );
  const { channels } = JSON.parse(readFileSync('docs/protocol/asyncapi.json', 'utf8')) as { channels: object };
  const described = Object.keys(channels).filter((name) => name.startsWith('event.'));
  const types = new Set(added.flatMap((type) => COMPOSED[type] ?? [type]));
  expect([...types].map((type) => `event.${type}`).sort()).toEqual(described.sort());
});
