import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type MessageKind, ProtocolSchemas } from './protocol-schemas';

/** A fenced block of JSON; what follows `json` says what it is, e.g. `lb.acquire request`. */
const BLOCK = /^ *```json(?: (\S+) (\S+))?\n([^]*?)^ *```$/gm;
/** A request in the text, e.g. `lb.leases {"serverId": ...}`. */
const INLINE = /`([a-z]+\.[a-z-]+) (\{[^`]*\})`/g;

const schemas = new ProtocolSchemas();
const pages = ['.', 'docs', 'libs', 'apps', 'lab', 'deploy', 'test'].flatMap((folder) =>
  readdirSync(folder, { recursive: folder !== '.', encoding: 'utf8' })
    .filter((file) => file.endsWith('.md') && !file.includes('node_modules'))
    .map((file) => join(folder, file)),
);
const examples = pages.flatMap((page) => {
  const text = readFileSync(page, 'utf8');
  const blocks = [...text.matchAll(BLOCK)].map(([, channel = '', kind = '', json]) => ({ page, channel, kind, json }));
  const inline = [...text.matchAll(INLINE)].map(([, channel, json]) => {
    return { page, channel, kind: 'request', json: json!.replaceAll(/: \.\.\./g, ': "example"') };
  });
  return [...blocks, ...inline];
});

it('finds the examples of the protocol page', () => {
  expect(examples.filter(({ page }) => page === 'docs/protocol/README.md').length).toBeGreaterThanOrEqual(4);
});

it.each(examples)('$page: $channel $kind fits its schema', ({ channel, kind, json }) => {
  expect(schemas.channelOf(`rollout.v1.pool.${channel}`), 'write ```json <operation> <kind>').toBe(channel);
  expect(schemas.fault(channel!, kind as MessageKind, JSON.parse(json!))).toBeUndefined();
});
