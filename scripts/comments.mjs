// Comments of a source text, each as one line: blocks of JSDoc and docstrings are split at blank lines and tags.

/** The mark of a line comment, by the end of the path. */
const MARKS = { lua: '--', py: '#' };
/** Comments for programs. */
const FOR_PROGRAMS = /^(eslint|oxlint|prettier|@ts|#!|noqa|pragma|type:)/;

const join = (lines) => lines.join(' ').trim();

/** The paragraphs of a block whose lines have no marks any more. */
function paragraphs(lines) {
  const found = [[]];
  for (const line of lines) {
    if (line === '' || line.startsWith('@')) found.push([]);
    if (line !== '') found.at(-1).push(line.replace(/^@(?:param \S+|\w+)( \{[^}]*\})? ?/, ''));
  }
  return found.map(join);
}

/** Blocks between an opening and a closing mark; the rest of the text keeps its lines. */
function takeBlocks(text, pattern, strip) {
  const comments = [];
  const rest = text.replace(pattern, (block) => {
    comments.push(...paragraphs(block.split('\n').map(strip)));
    return block.replace(/[^\n]/g, '');
  });
  return { comments, rest };
}

/** Neighbouring lines of comments, and comments behind code. */
function lineComments(text, mark) {
  const comments = [];
  let run = [];
  const end = () => {
    comments.push(...paragraphs(run));
    run = [];
  };
  for (const line of text.split('\n')) {
    const trimmed = line.trim();
    if (trimmed.startsWith(mark)) {
      run.push(
        trimmed
          .slice(mark.length)
          .replace(/^[-!:]*/, '')
          .trim(),
      );
      continue;
    }
    end();
    const [, behind] = mark === '//' ? (/\S.*?\s\/\/ (.*)$/.exec(line) ?? []) : [];
    if (behind !== undefined) comments.push(behind);
  }
  end();
  return comments;
}

/** All comments of a TypeScript, JavaScript, Lua or Python file. */
export function readComments(path, text) {
  const kind = path.slice(path.lastIndexOf('.') + 1);
  const block =
    kind === 'py'
      ? takeBlocks(text, /"""[^]*?"""/g, (line) => line.replaceAll('"""', '').trim())
      : kind === 'lua'
        ? { comments: [], rest: text }
        : takeBlocks(text, /\/\*\*?[^]*?\*\//g, (line) => line.replace(/^\s*\/?\*+\/?|\*\/\s*$/g, '').trim());
  return [...block.comments, ...lineComments(block.rest, MARKS[kind] ?? '//')].filter(
    (comment) => comment !== '' && !FOR_PROGRAMS.test(comment),
  );
}
