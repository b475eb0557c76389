import { invalidField } from './errors';

/** Prefix of an id of a path that is written in base64url, for ids that clients or proxies would change on the way. */
const BASE64URL = 'base64url:';
const BASE64URL_TEXT = /^[A-Za-z0-9_-]+$/;

/**
 * Reads an id of a path: the text itself, or the text behind `base64url:`.
 * @throws BroomwagonError VALIDATION_FAILED for broken base64url
 */
export function decodePathId(field: string, segment: string): string {
  if (!segment.startsWith(BASE64URL)) return segment;
  const encoded = segment.slice(BASE64URL.length);
  const bytes = Buffer.from(encoded, 'base64url');
  const id = bytes.toString();
  const isExact = BASE64URL_TEXT.test(encoded) && Buffer.from(id).equals(bytes);
  if (isExact && bytes.toString('base64url') === encoded) return id;
  throw invalidField(field, 'must have the base64url of a text in UTF-8, without padding, behind base64url:');
}

/** Writes an id as a segment of a path that clients and proxies do not change. */
export function encodePathId(id: string): string {
  const isChangedOnTheWay = /[/\\%;?#]|^\.{1,2}$/.test(id) || id.startsWith(BASE64URL);
  return isChangedOnTheWay ? BASE64URL + Buffer.from(id).toString('base64url') : encodeURIComponent(id);
}
