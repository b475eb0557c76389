import { join } from 'node:path';
import * as ts from 'typescript';

/**
 * Reads the reply type of each operation: `'lb.acquire': operation<lb.LeaseGrant>()(...)` names it as a type argument,
 * which only the source holds.
 * @param root folder of the repository
 * @param table file of the operations
 */
export function readReplyTypes(root: string, table = 'operations.ts'): Record<string, string> {
  const file = join(root, 'libs/contracts/src', table);
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
