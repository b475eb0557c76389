import { BroomwagonError, LIMITS } from '@broomwagon/contracts';

/**
 * Cuts bytes into chunks of at most 256 kB; an empty payload is one empty chunk.
 * @throws BroomwagonError PAYLOAD_TOO_LARGE above 64 MiB
 */
export function splitChunks(bytes: Buffer): Buffer[] {
  const size = LIMITS.payloadChunkBytes;
  if (bytes.length > size * LIMITS.payloadChunks) {
    throw new BroomwagonError('PAYLOAD_TOO_LARGE', `A payload of ${bytes.length} bytes is over 64 MiB`);
  }
  const chunks: Buffer[] = [];
  for (let start = 0; start < bytes.length || start === 0; start += size) {
    chunks.push(bytes.subarray(start, start + size));
  }
  return chunks;
}

/** @throws BroomwagonError PAYLOAD_TOO_LARGE, VALIDATION_FAILED */
export function checkChunk(index: number, count: number, bytes: Buffer): void {
  if (bytes.length > LIMITS.payloadChunkBytes) {
    throw new BroomwagonError('PAYLOAD_TOO_LARGE', `A chunk of ${bytes.length} bytes is over 256 kB`, {
      field: 'data',
    });
  }
  if (!Number.isInteger(count) || count < 1 || count > LIMITS.payloadChunks) {
    throw new BroomwagonError('VALIDATION_FAILED', 'chunkCount must be 1 to 256', { field: 'chunkCount' });
  }
  if (!Number.isInteger(index) || index < 0 || index >= count) {
    throw new BroomwagonError('VALIDATION_FAILED', 'chunkIndex must be below chunkCount', { field: 'chunkIndex' });
  }
}
