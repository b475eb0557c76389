import type { ServerResponse } from 'node:http';

/** Maximum size of a chunk, bytes, for which a socket does not ask its writer to wait. */
const MAX_DIRECT = 4_096;

/**
 * Writes a piece of a stream whose headers are set. Node would write length, text and end of the piece separately.
 * @param hasWritten an earlier piece was written. Then, if no byte waits, the socket itself gets the piece, which costs
 *   less. Otherwise the response writes the piece, and also reports when the client has read enough.
 * @returns `hasWritten` of the next call. An empty piece is not written: for clients it would be the end of the stream.
 */
export function writeChunk(response: ServerResponse, text: string, hasWritten: boolean): boolean {
  if (text === '') return hasWritten;
  const { chunkedEncoding, socket } = response;
  const bytes = Buffer.byteLength(text);
  const piece = chunkedEncoding ? `${bytes.toString(16)}\r\n${text}\r\n` : text;
  // ASCII text is copied unchanged.
  const encoding = bytes === text.length ? 'latin1' : 'utf8';
  if (hasWritten && socket?.writable && bytes <= MAX_DIRECT && response.writableLength === 0) {
    socket.write(piece, encoding);
    return true;
  }
  response.chunkedEncoding = false;
  response.write(piece, encoding);
  response.chunkedEncoding = chunkedEncoding;
  return true;
}
