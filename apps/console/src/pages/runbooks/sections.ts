/** A section of a document, without its heading. */
export interface Section {
  title: string;
  body: string;
}

/** Splits a document of Markdown at its headings of the third level; what precedes the first one is left out. */
export function splitSections(text: string): Section[] {
  return text
    .split(/^### /m)
    .slice(1)
    .map((part) => {
      const [title = '', ...lines] = part.split('\n');
      const end = lines.findIndex((line) => line.startsWith('## '));
      return {
        title: title.trim(),
        body: lines
          .slice(0, end < 0 ? undefined : end)
          .join('\n')
          .trim(),
      };
    });
}
