// `node scripts/lint-exports.mjs`: finds values that a library exports and that no product file outside of the library
// imports. Lab and tests import such a value from the file that declares it. Part of `npm run lint`.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { root } from './prepare.mjs';

const SCOPE = '@broomwagon/';
const PRODUCT = /^(apps|libs)\/(?!testing\/)(?!.*\.(spec|fixture)\.tsx?$)/;
/** Libraries that may export everything: the published protocol, and the library that only tests and lab use. */
const FREE = new Set(['contracts', 'testing']);
/** Simulators in lab run the policies of the services, so an import by lab counts. */
const SHARED_WITH_LAB = 'policies';

const parse = (path) => ts.createSourceFile(path, readFileSync(join(root, path), 'utf8'), ts.ScriptTarget.Latest);
const nameOf = ({ name }) => name.text;

/** Names of the values that a file exports. */
function valuesOf(path) {
  return parse(path).statements.flatMap((node) => {
    if (ts.isExportDeclaration(node)) {
      if (node.isTypeOnly) return [];
      if (node.exportClause) return node.exportClause.elements.filter((one) => !one.isTypeOnly).map(nameOf);
      const target = join(path, '..', node.moduleSpecifier.text);
      return valuesOf(existsSync(join(root, `${target}.ts`)) ? `${target}.ts` : join(target, 'index.ts'));
    }
    const isExported = node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    if (!isExported || ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return [];
    return ts.isVariableStatement(node) ? node.declarationList.declarations.map(nameOf) : [nameOf(node)];
  });
}

/** Names that a file imports from other libraries, each as `library.name`. */
function importsOf(path) {
  const found = [];
  const add = (specifier, bindings) => {
    const library = specifier.slice(SCOPE.length);
    if (!specifier.startsWith(SCOPE) || path.startsWith(`libs/${library}/`)) return;
    for (const { propertyName, name } of bindings.elements) found.push(`${library}.${(propertyName ?? name).text}`);
  };
  const visit = (node) => {
    if (ts.isImportDeclaration(node)) {
      const bindings = node.importClause?.namedBindings;
      if (bindings && ts.isNamedImports(bindings)) add(node.moduleSpecifier.text, bindings);
    } else if (ts.isVariableDeclaration(node) && ts.isObjectBindingPattern(node.name)) {
      // const { name } = await import('@broomwagon/library')
      const call = node.initializer?.expression;
      if (call?.expression?.kind === ts.SyntaxKind.ImportKeyword) add(call.arguments[0].text, node.name);
    }
    ts.forEachChild(node, visit);
  };
  visit(parse(path));
  return found;
}

const files = execFileSync('git', ['grep', '-lF', SCOPE, '--', 'apps', 'libs', 'lab'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((path) => /\.tsx?$/.test(path));
const used = new Set(files.filter((path) => PRODUCT.test(path)).flatMap(importsOf));
const usedByLab = new Set(files.filter((path) => path.startsWith('lab/')).flatMap(importsOf));

for (const library of readdirSync(join(root, 'libs')).filter((name) => !FREE.has(name))) {
  const barrel = `libs/${library}/src/index.ts`;
  for (const name of valuesOf(barrel)) {
    const key = `${library}.${name}`;
    if (used.has(key) || (library === SHARED_WITH_LAB && usedByLab.has(key))) continue;
    console.error(`${barrel}: no product file outside of the library imports "${name}"`);
    process.exitCode = 1;
  }
}
