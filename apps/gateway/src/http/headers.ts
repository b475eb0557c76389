import type { IncomingHttpHeaders } from 'node:http';
import { invalidField } from '@broomwagon/contracts';
import { decodeUtf8 } from '../fields/read-fields';

/** The value of a header as UTF-8; undefined if it is absent or empty. */
export function readHeaderText(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' && value !== '' ? decodeUtf8(value) : undefined;
}

/** Whether a header with only one valid value is sent. @throws BroomwagonError VALIDATION_FAILED for another value */
export function isSent(headers: IncomingHttpHeaders, name: string, value: string): boolean {
  const sent = readHeaderText(headers, name);
  if (sent !== undefined && sent !== value) throw invalidField(name, `must be ${value}`);
  return sent !== undefined;
}
