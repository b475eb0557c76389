import { AdminApiError } from './admin-api-error';

/** Prefix of an id of a path in base64url, as admin-api reads it (docs/admin-api.md). */
const BASE64URL = 'base64url:';
/**
 * Ids that are sent in base64url: clients and proxies decode a slash, resolve `.` and `..`, or refuse some escapes. An
 * id that begins like the prefix would be read as an encoded one.
 */
const CHANGED_ON_THE_WAY = /[/\\%;?#\p{Cs}]|^\.{1,2}$|^base64url:/u;

/**
 * Writes ids into the `{field}`s of a path.
 * @throws AdminApiError VALIDATION_FAILED for an empty id, which would make the path of another route
 */
export function serializePath(path: string, ids: Record<string, unknown>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, field: string) => {
    const id = String(ids[field] ?? '');
    if (id !== '') return encodePathId(id);
    const reason = `${field} is empty: the path ${path} needs an id there`;
    throw new AdminApiError({ code: 'VALIDATION_FAILED', reason, retryable: false, field });
  });
}

function encodePathId(id: string): string {
  if (!CHANGED_ON_THE_WAY.test(id)) return encodeURIComponent(id);
  const bytes = Array.from(new TextEncoder().encode(id), (byte) => String.fromCharCode(byte)).join('');
  return BASE64URL + btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}
