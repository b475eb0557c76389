import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { expect, it } from 'vitest';
import { moduleName } from './function-library';
import { LUA_ROOT, theLibrary } from './function-runner';

const sources = readdirSync(LUA_ROOT, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.lua'))
  .map((file) => ({ file, text: readFileSync(join(LUA_ROOT, file), 'utf8') }));
const transitions = sources.filter(({ text }) => text.startsWith('--[['));
const modules = sources.filter(({ text }) => !text.startsWith('--[['));

/** Code without comments and texts. */
function stripComments(text: string): string {
  return text
    .replace(/^--\[\[[\s\S]*?\]\]/, '')
    .replaceAll(/'(?:[^'\\\n]|\\.)*'/g, "''")
    .replaceAll(/--.*$/gm, '');
}

const toModule = (file: string): string => moduleName(file.slice(0, -'.lua'.length));

it('uses in every file only names that other modules define', () => {
  const known = new Set<string>();
  const names = new Set(modules.map(({ file }) => toModule(file)));
  for (const { file, text } of modules) {
    const name = toModule(file);
    for (const [, field] of stripComments(text).matchAll(
      new RegExp(`(?:function )?\\b${name}[.:](\\w+)(?=\\(| =[^=])`, 'g'),
    )) {
      known.add(`${name}.${field}`);
    }
    const table = new RegExp(`local ${name} = \\{([^}]*)\\}`).exec(stripComments(text))?.[1] ?? '';
    for (const [, field] of table.matchAll(/(\w+) =/g)) known.add(`${name}.${field}`);
  }
  const missing = sources.flatMap(({ file, text }) =>
    [...stripComments(text).matchAll(/\b([A-Z][a-z]\w*)\.(\w+)/g)]
      .filter(([, module, field]) => !names.has(module!) || !known.has(`${module}.${field}`))
      .map(([used]) => `${file}: ${used}`),
  );
  expect(missing).toEqual([]);
});

it('has no circle of modules', () => {
  const required = new Map<string, Set<string>>(modules.map(({ file }) => [toModule(file), new Set()]));
  for (const { file, text } of modules) {
    const name = toModule(file);
    for (const [other] of stripComments(text).matchAll(/\b[A-Z]\w*/g)) {
      if (other !== name && required.has(other)) required.get(name)!.add(other);
    }
  }
  // A module that requires no other, or that no other requires, is in no circle.
  const left = new Set(required.keys());
  const isOutside = (name: string): boolean =>
    ![...left].some((other) => required.get(name)!.has(other)) ||
    ![...left].some((other) => required.get(other)!.has(name));
  for (let before = 0; before !== left.size;) {
    before = left.size;
    for (const name of left) if (isOutside(name)) left.delete(name);
  }
  expect([...left].sort()).toEqual([]);
});

it('names the hash of a job, round, group or request only in its record', () => {
  const others = sources
    .filter(({ file }) => !file.startsWith('records/'))
    .flatMap(({ file, text }) =>
      [...stripComments(text).matchAll(/\bkey:(?:job|round|group|request)\(/g)].map(([key]) => `${file}: ${key}`),
    );
  expect(others).toEqual([]);
});

it('writes nothing when it loads a record', () => {
  const writes = modules
    .filter(({ file }) => file.startsWith('records/'))
    .flatMap(({ file, text }) =>
      [...text.matchAll(/^function \w+\.((?:load|read)\w*|get|rules)\(.*\n(?:(?: .*)?\n)*?end$/gm)].flatMap(
        ([body, name]) =>
          [
            ...body.matchAll(/redis\.call\('(?!HMGET|HGET'|EXISTS)\w+|\b[A-Z]\w+\.(?:set|add|note|store|write)\w*\(/g),
          ].map(([write]) => `${file}, ${name}: ${write}`),
      ),
    );
  expect(writes).toEqual([]);
});

/** Names of the arguments that the header lists, without fields of nested objects. */
function listedArguments(text: string): string[] {
  const header = text.slice(0, text.search(/^(Reply|Steps|ARGV\[2\])/m));
  const list = header.slice(header.indexOf('ARGV[1]')).replace(/^ARGV\[1\](?: JSON:)? ?/, '');
  const braced = /^\{([\s\S]*?)\}(?:$|:| {2})/m.exec(list);
  if (list.startsWith('{') && braced) return namesIn(braced[1]!.replaceAll(/'[^']*'|\{[^}]*\}/g, ''));
  if (/^\w+(?:, \w+)*:/.test(list)) return list.split(/;|\n {8}(?=\w+:)/).flatMap((one) => namesIn(one));
  return list.split('\n').flatMap((line) => {
    const names = /^ {2}(\w+\??(?:, \w+\??)*)(?: {2,}| of | number| string|$)/.exec(line)?.[1];
    return names === undefined ? [] : names.split(', ').map((name) => name.replace('?', ''));
  });
}

function namesIn(list: string): string[] {
  return list.split(';').flatMap((part) =>
    part
      .split(':', 1)[0]!
      .split(',')
      .map((name) => /^\s*(\w+)/.exec(name)?.[1] ?? '')
      .filter((name) => name !== ''),
  );
}

/** Names of the arguments that each typed call passes, by name of the transition. */
function passedArguments(): Map<string, string[]> {
  const root = join(LUA_ROOT, '..', '..', '..');
  const { config } = ts.readConfigFile(join(root, 'tsconfig.json'), (file) => ts.sys.readFile(file));
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  // The types of arguments are of this repository: packages stay unresolved, because reading them takes seconds.
  const host = ts.createCompilerHost(options);
  host.resolveModuleNameLiterals = (literals, importer) =>
    literals.map(({ text }) =>
      /^(\.|@broomwagon\/)/.test(text)
        ? ts.resolveModuleName(text, importer, options, host)
        : { resolvedModule: undefined },
    );
  const settings = { ...options, noEmit: true, types: [] };
  const program = ts.createProgram([join(LUA_ROOT, 'index.ts')], settings, host);
  const checker = program.getTypeChecker();
  const passed = new Map<string, string[]>();
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && node.expression.getText() === 'transition' && node.typeArguments) {
      const [name] = node.arguments;
      const type = checker.getTypeFromTypeNode(node.typeArguments[0]!);
      if (name && ts.isStringLiteral(name)) {
        const kinds = type.isUnion() ? type.types : [type];
        const names = kinds.flatMap((kind) => checker.getPropertiesOfType(kind).map((property) => property.name));
        passed.set(name.text, [...new Set([...(passed.get(name.text) ?? []), ...names])]);
      }
    }
    ts.forEachChild(node, visit);
  };
  for (const file of program.getSourceFiles()) if (file.fileName.startsWith(LUA_ROOT)) visit(file);
  return passed;
}

it('passes to every transition exactly the arguments that its header lists, and the transition reads no others', () => {
  const passed = passedArguments();
  const faults: string[] = [];
  for (const { file, text } of transitions) {
    const name = file.slice(0, -'.lua'.length);
    const calls = passed.get(name);
    if (!calls) {
      faults.push(`${name}: no store calls it`);
      continue;
    }
    const listed = listedArguments(text);
    for (const one of calls)
      if (!listed.includes(one)) faults.push(`${name}: is passed ${one}, which its header lacks`);
    for (const one of listed) if (!calls.includes(one)) faults.push(`${name}: lists ${one}, which nobody passes`);
    for (const [, read] of stripComments(text).matchAll(/\bargs\.(\w+)/g)) {
      if (!listed.includes(read!)) faults.push(`${name}: reads ${read}, which its header lacks`);
    }
  }
  expect([...new Set(faults)]).toEqual([]);
});

it('keeps no data of a call in a variable of a module', () => {
  const assigned = modules.flatMap(({ file, text }) => {
    const code = stripComments(text);
    const locals = [...code.matchAll(/^local (?!function)([\w, ]+?)(?: =.*)?$/gm)].flatMap(([, list]) =>
      list!.split(', '),
    );
    return locals
      .filter((one) => new RegExp(`^ +(?:${one}|${one}\\[[^\\]]*\\]|${one}\\.\\w+) = `, 'm').test(code))
      .map((one) => `${file}: ${one}`);
  });
  expect(assigned).toEqual([]);
});

it('has functions for all transitions', () => {
  expect([...theLibrary().functions.keys()].sort()).toEqual(transitions.map(({ file }) => file.slice(0, -4)).sort());
});
