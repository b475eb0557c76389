import { ERROR_CODES } from '@broomwagon/contracts';
import { getComponent, type Components, type Json } from './json-schema';

const WIDTH = 110;
const HEADER = '# Made by `npm run schema` from docs/protocol/asyncapi.json. Do not edit.';

interface Channel {
  messages: Record<string, { payload: Json }>;
}

/** `protocol.py` of clients/python: a TypedDict for each schema, and the type of a call of each operation. */
export function pythonTypes(document: Json): string {
  const { channels, components } = document as {
    channels: Record<string, Channel>;
    components: { schemas: Components };
  };
  const types = new PythonTypes();
  for (const [name, schema] of Object.entries(components.schemas)) types.add(name, schema);
  const toPythonType = (channel: string, message: string) =>
    getComponent(channels[channel]!.messages[message]!.payload);
  const operations = Object.keys(channels).filter((name) => channels[name]!.messages.request);
  const overloads = operations.map((name) =>
    [
      '    @overload',
      '    async def __call__(',
      `        self, operation: Literal["${name}"], body: ${toPythonType(name, 'request')}, *, deadline: float = ...`,
      `    ) -> ${toPythonType(`${name}.reply`, 'reply')}: ...`,
    ].join('\n'),
  );
  return [
    `"""Types of the protocol, with the names of the wire."""`,
    '',
    HEADER,
    '',
    'from __future__ import annotations',
    '',
    'from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, Union, overload',
    '',
    'if TYPE_CHECKING:',
    '    from typing_extensions import NotRequired',
    '',
    types.text(),
    '',
    '',
    'class Call(Protocol):',
    '    """Calls an operation and returns its reply."""',
    '',
    overloads.join('\n\n'),
    '',
  ].join('\n');
}

/** `errors.py` of clients/python: an exception for each code. */
export function pythonErrors(): string {
  const classes = Object.entries(ERROR_CODES).map(
    ([code, { about }]) =>
      `class ${className(code)}(BroomwagonError):\n${docstring(about, '    ')}\n\n    code = "${code}"`,
  );
  const table = Object.keys(ERROR_CODES).map((code) => `    "${code}": ${className(code)},`);
  return [
    '"""An exception for each error code of the protocol (docs/protocol/errors.md)."""',
    '',
    HEADER,
    '',
    'from __future__ import annotations',
    '',
    'from ._error import BroomwagonError',
    '',
    '',
    classes.join('\n\n\n'),
    '',
    '',
    'BY_CODE: dict[str, type[BroomwagonError]] = {',
    ...table,
    '}',
    '',
  ].join('\n');
}

class PythonTypes {
  private readonly classes: string[] = [];
  /** Names of other types must be defined before an alias is evaluated. */
  private readonly aliases: string[] = [];

  text(): string {
    return [...this.classes, this.aliases.join('\n')].join('\n\n\n');
  }

  add(name: string, schema: Json): void {
    if (schema.type !== 'object' || isMapping(schema)) {
      this.aliases.push(`${name} = ${this.toPythonType(schema, name, true)}`);
      return;
    }
    const required = new Set(schema.required as string[] | undefined);
    const fields = Object.entries((schema.properties ?? {}) as Components).map(([field, value]) => {
      const type = this.toPythonType(value, name + field[0]!.toUpperCase() + field.slice(1));
      const declared = `    ${field}: ${required.has(field) ? type : `NotRequired[${type}]`}`;
      return value.description ? `${declared}\n${docstring(value.description as string, '    ')}` : declared;
    });
    const about = docstring((schema.description as string | undefined) ?? `Part of another type.`, '    ');
    this.classes.push([`class ${name}(TypedDict):\n${about}`, ...fields].join('\n\n'));
  }

  /** @param owner name of the type that an object without a name gets @param isAlias the type is evaluated */
  private toPythonType(schema: Json, owner: string, isAlias = false): string {
    const component = getComponent(schema);
    if (component) return isAlias ? `"${component}"` : component;
    if (schema.enum) return `Literal[${(schema.enum as unknown[]).map(literal).join(', ')}]`;
    if (schema.const !== undefined) return `Literal[${literal(schema.const)}]`;
    const union = (schemas: Json[]) =>
      `Union[${schemas.map((one) => this.toPythonType(one, owner, isAlias)).join(', ')}]`;
    if (schema.anyOf) return union(schema.anyOf as Json[]);
    if (Array.isArray(schema.type)) return union(schema.type.map((type: string) => ({ type })));
    switch (schema.type) {
      case 'string':
        return 'str';
      case 'integer':
        return 'int';
      case 'number':
        return 'float';
      case 'boolean':
        return 'bool';
      case 'null':
        return 'None';
      case 'array':
        return `list[${this.toPythonType(schema.items as Json, owner, isAlias)}]`;
      case 'object': {
        if (isMapping(schema)) return `dict[str, ${this.toValueType(schema, owner, isAlias)}]`;
        this.add(owner, schema);
        return owner;
      }
      default:
        return 'Any';
    }
  }

  private toValueType({ properties = {}, additionalProperties }: Json, owner: string, isAlias: boolean): string {
    const values = [...Object.values(properties as Components), additionalProperties as Json | undefined];
    const types = new Set(values.filter((value) => value).map((value) => this.toPythonType(value!, owner, isAlias)));
    return types.size === 1 ? [...types][0]! : 'Any';
  }
}

/** An object that is open, or whose fields have names that no class can have. */
function isMapping({ properties, additionalProperties }: Json): boolean {
  if (typeof additionalProperties === 'object') return true;
  if (properties === undefined) return additionalProperties !== false;
  return Object.keys(properties as Components).some((name) => !/^\w+$/.test(name));
}

function literal(value: unknown): string {
  return typeof value === 'boolean' ? (value ? 'True' : 'False') : JSON.stringify(value);
}

/** `SERVERS_FULL` is `ServersFull`. */
function className(code: string): string {
  return code.replaceAll(/_?([A-Z])([A-Z]*)/g, (_, first: string, rest: string) => first + rest.toLowerCase());
}

function docstring(about: string, indent: string): string {
  const lines = [''];
  for (const word of about.replaceAll('\\', '\\\\').replaceAll('"""', "'''").split(/\s+/)) {
    const last = lines.at(-1)!;
    if (last !== '' && indent.length + last.length + word.length + 7 > WIDTH) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  const text = lines.join(`\n${indent}`);
  const isOpenQuote = text.endsWith('"');
  return `${indent}"""${text}${isOpenQuote ? ' ' : ''}${lines.length > 1 ? `\n${indent}` : ''}"""`;
}
