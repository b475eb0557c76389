import type { ServerResponse } from 'node:http';

/** Writes a piece of a stream whose headers are set. Node would write its length, its text and its end apart. */
export function writeChunk(response: ServerResponse, text: string): void {
  const { chunkedEncoding } = response;
  const bytes = Buffer.byteLength(text);
  response.chunkedEncoding = false;
  response.write(
    chunkedEncoding ? `${bytes.toString(16)}\r\n${text}\r\n` : text,
    // ASCII is copied as it is.
    bytes === text.length ? 'latin1' : 'utf8',
  );
  response.chunkedEncoding = chunkedEncoding;
}
