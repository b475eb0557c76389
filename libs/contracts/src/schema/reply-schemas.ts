import { join } from 'node:path';
import { createGenerator, type Config } from 'ts-json-schema-generator';
import * as ts from 'typescript';
import type { ReplySchemas } from './asyncapi';

/**
 * Reads the reply types out of the operations table and makes their JSON schemas from the interfaces.
 * @param root folder of the repository
 */
export function readReplySchemas(root: string): ReplySchemas {
  const replyOf = readReplyTypes(join(root, 'libs/contracts/src/operations.ts'));
  const config: Config = {
    path: join(root, 'libs/contracts/src/index.ts'),
    tsconfig: join(root, 'tsconfig.json'),
    skipTypeCheck: true,
    additionalProperties: true,
  };
  const generator = createGenerator(config);
  const definitions: ReplySchemas['definitions'] = {};
  for (const type of new Set(Object.values(replyOf))) {
    const { definitions: found = {} } = generator.createSchema(type);
    for (const [name, schema] of Object.entries(found)) definitions[plainName(name)] = rewrite(schema) as never;
  }
  return { definitions, replyOf };
}

/** `'lb.acquire': operation<lb.LeaseGrant>()(...)` names the reply as a type argument, which only the source holds. */
function readReplyTypes(file: string): Record<string, string> {
  const text = ts.sys.readFile(file);
  if (text === undefined) throw new Error(`cannot read ${file}`);
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const replyOf: Record<string, string> = {};
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAssignment(node) && ts.isStringLiteral(node.name) && ts.isCallExpression(node.initializer)) {
      const inner = node.initializer.expression;
      const type = ts.isCallExpression(inner) ? inner.typeArguments?.[0] : undefined;
      if (type) replyOf[node.name.text] = type.getText(source).split('.').at(-1) ?? '';
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return replyOf;
}

/** Generic instances get names with `<` and `,`; a component name may not hold them. */
function plainName(name: string): string {
  return decodeURIComponent(name).replaceAll(/[^A-Za-z0-9._-]+/g, '_');
}

function rewrite(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(rewrite);
  if (typeof schema !== 'object' || schema === null) return schema;
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [
      key,
      key === '$ref' && typeof value === 'string'
        ? `#/components/schemas/${plainName(value.replace('#/definitions/', ''))}`
        : rewrite(value),
    ]),
  );
}
