export interface ReportTable {
  head: readonly string[];
  rows: readonly (readonly string[])[];
}
export interface ReportSection {
  title: string;
  text?: string;
  svg?: string;
  table?: ReportTable;
}

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;max-width:1040px;margin:2rem auto;padding:0 1rem;color:#222}
table{border-collapse:collapse;margin:1rem 0}td,th{border:1px solid #ddd;padding:.25rem .6rem;text-align:left;vertical-align:top}
th{background:#f5f5f5}td.number{text-align:right;font-variant-numeric:tabular-nums}svg{max-width:100%;height:auto}h2{margin-top:2.5rem}`;

/** One self-contained page, which can be mailed or kept as it is. */
export function htmlReport(title: string, intro: string, sections: readonly ReportSection[]): string {
  const body = sections.map(({ title: name, text, svg, table }) =>
    [
      `<h2>${escaped(name)}</h2>`,
      text === undefined ? '' : `<p>${escaped(text)}</p>`,
      svg ?? '',
      table === undefined ? '' : htmlTable(table),
    ].join('\n'),
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${escaped(title)}</title><style>${STYLE}</style></head>
<body><h1>${escaped(title)}</h1><p>${escaped(intro)}</p>
${body.join('\n')}
</body></html>
`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

function htmlTable({ head, rows }: ReportTable): string {
  const cells = rows.map((row) => `<tr>${row.map(cell).join('')}</tr>`);
  return `<table><thead><tr>${head.map((name) => `<th>${escaped(name)}</th>`).join('')}</tr></thead><tbody>${cells.join('\n')}</tbody></table>`;
}

function cell(text: string): string {
  return `<td${/^-?[\d.,]+( %|x| s)?$/.test(text) ? ' class="number"' : ''}>${escaped(text)}</td>`;
}
