import type { ServerResponse } from 'node:http';
import { drained } from '@broomwagon/platform';

/**
 * Writes a part of a response, and waits until the client has taken most of it.
 * @returns false if the client has disconnected
 */
export async function writePart(response: ServerResponse, part: string | Buffer): Promise<boolean> {
  if (response.destroyed) return false;
  if (response.write(part)) return true;
  await drained(response);
  return !response.destroyed;
}
