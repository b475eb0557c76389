// Generates TypeScript types of the protocol from asyncapi.json with json-schema-to-typescript: one per schema, and
// `Operations` and `Events`, which map operations and events to their types.
//
//   node docs/protocol/examples/generate-types.mjs src/protocol.ts
import { readFileSync, writeFileSync } from 'node:fs';
import { compile } from 'json-schema-to-typescript';

const { channels, components } = JSON.parse(readFileSync(new URL('../asyncapi.json', import.meta.url), 'utf8'));

/** Reduces references to a `$ref` into `$defs`, since the generator creates another type for any other reference. */
function plainReferences(schema) {
  if (Array.isArray(schema)) return schema.map(plainReferences);
  if (typeof schema !== 'object' || schema === null) return schema;
  if (typeof schema.$ref === 'string') return { $ref: schema.$ref.replace('#/components/schemas/', '#/$defs/') };
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, plainReferences(value)]));
}

const typeOf = (channel, message) => channels[channel].messages[message].payload.$ref.split('/').at(-1);
const names = (message) => Object.keys(channels).filter((name) => channels[name].messages[message]);
const operations = names('request').map(
  (name) => `  '${name}': { request: ${typeOf(name, 'request')}; reply: ${typeOf(`${name}.reply`, 'reply')} };`,
);
const events = names('event').map((name) => `  '${name.replace('event.', '')}': ${typeOf(name, 'event')};`);

const types = await compile({ $defs: plainReferences(components.schemas) }, 'Protocol', {
  additionalProperties: false,
  unreachableDefinitions: true,
  // Without this option, a list of at least one item is a tuple, to which no ordinary list can be assigned.
  ignoreMinAndMaxItems: true,
  bannerComment: '// Made from docs/protocol/asyncapi.json.',
});
const maps = `export interface Operations {\n${operations.join('\n')}\n}\nexport interface Events {\n${events.join('\n')}\n}\n`;
writeFileSync(process.argv[2], `${types}\n${maps}`);
