const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * Lines of a JSONL stream as bytes, without their ends (LF or CRLF). Not `node:readline`: from Node 24 on it also ends
 * lines at U+2028 and U+2029, which JSON allows inside strings (nodejs/node#57591).
 */
export async function* splitLines(stream: AsyncIterable<Uint8Array | string>): AsyncGenerator<Buffer> {
  let begun: Buffer[] = [];
  for await (const chunk of stream) {
    const bytes = Buffer.from(chunk as Uint8Array);
    let start = 0;
    for (let end = bytes.indexOf(LINE_FEED); end !== -1; end = bytes.indexOf(LINE_FEED, start)) {
      yield withoutReturn(Buffer.concat([...begun, bytes.subarray(start, end)]));
      begun = [];
      start = end + 1;
    }
    if (start < bytes.length) begun.push(bytes.subarray(start));
  }
  if (begun.length > 0) yield withoutReturn(Buffer.concat(begun));
}

function withoutReturn(line: Buffer): Buffer {
  return line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line;
}
