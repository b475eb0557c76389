import { Anchor, Code, Table, Text } from '@mantine/core';
import { Fragment, type ReactNode } from 'react';
import { buildHref } from '../../address/route';

/** Shows the part of Markdown that the runbooks use: paragraphs, tables, numbered lists, code and links. */
export function Markdown({ text }: { text: string }) {
  const blocks = text.split(/(```[^]*?```)|\n\n/).filter((block) => block !== undefined && block.trim() !== '');
  return blocks.map((block, index) => <Fragment key={index}>{renderBlock(block!.trim())}</Fragment>);
}

function renderBlock(block: string): ReactNode {
  if (block.startsWith('```')) return <Code block>{block.replace(/^```\w*\n/, '').replace(/\n```$/, '')}</Code>;
  const lines = block.split('\n');
  if (block.startsWith('|')) return <MarkdownTable lines={lines} />;
  if (/^\d+\. /.test(block)) {
    return (
      <ol>
        {lines.map((line) => (
          <li key={line}>
            <Text size="sm">{renderInline(line.replace(/^\d+\. /, ''))}</Text>
          </li>
        ))}
      </ol>
    );
  }
  return (
    <Text size="sm" my="xs">
      {renderInline(block)}
    </Text>
  );
}

function MarkdownTable({ lines }: { lines: readonly string[] }) {
  const [head, , ...rows] = lines.map((line) => line.split('|').slice(1, -1));
  return (
    <Table.ScrollContainer minWidth={300}>
      <Table>
        <Table.Thead>
          <Table.Tr>
            {head!.map((cell) => (
              <Table.Th key={cell}>{renderInline(cell.trim())}</Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((cells) => (
            <Table.Tr key={cells.join()}>
              {cells.map((cell) => (
                <Table.Td key={cell}>{renderInline(cell.trim())}</Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

/** Code, and links to other runbooks. A link to another document becomes its text with the path. */
function renderInline(text: string): ReactNode[] {
  return text.split(/(`[^`]+`|\[[^\]]+\]\([^)]+\))/).map((part, index) => {
    if (part.startsWith('`')) return <Code key={index}>{part.slice(1, -1)}</Code>;
    const [, label, target] = /^\[([^\]]+)\]\(([^)]+)\)$/.exec(part) ?? [undefined, part, ''];
    if (target!.startsWith('#')) {
      return (
        <Anchor key={index} href={buildHref('runbooks', { name: target!.slice(1) })} inherit underline="always">
          {label}
        </Anchor>
      );
    }
    return target === '' ? label : `${label} (docs/operations/${target})`;
  });
}
