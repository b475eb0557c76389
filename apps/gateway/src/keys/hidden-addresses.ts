import { isIP } from 'node:net';
import { BroomwagonError, includesRole, type Role } from '@broomwagon/contracts';

const ENGINE = 'the engine';
const URLS = /\bhttps?:\/\/[^\s«»"'<>()]*[^\s«»"'<>().,;:]/gi;
/** Texts that may be an address with or without a port; {@link isIP} decides. */
const ADDRESSES = /(?<![\w.:])\[?[0-9a-f.]{0,39}[:.][0-9a-f:.]{0,45}[0-9a-f]\]?(?::\d+)?(?!\w)/gi;
const PORT = /:\d+$/;

/**
 * Converts an error for a caller of a role. Only trainers and operators learn the addresses of engines and services.
 * For other callers, the error of a connection has only its code.
 */
export function toCallerError(error: BroomwagonError, role: Role): BroomwagonError {
  if (includesRole(role, 'trainer')) return error;
  const message = withoutAddresses(error);
  if (message === error.message) return error;
  const { code, field, retryAfterMs, details } = error;
  return new BroomwagonError(code, message, { field, retryAfterMs, details, cause: error });
}

function withoutAddresses({ code, message, cause }: BroomwagonError): string {
  // The texts of Node contain hosts in many forms: as looked up, or as in certificates.
  const { code: reason } = (cause ?? {}) as { code?: unknown };
  const isTransport = code === 'ENGINE_UNREACHABLE' || (code === 'ENGINE_ERROR' && typeof reason === 'string');
  if (isTransport) return `The connection to ${ENGINE} failed${typeof reason === 'string' ? `: ${reason}` : ''}`;
  return message.replace(URLS, ENGINE).replace(ADDRESSES, (text) => (isAddress(text) ? ENGINE : text));
}

function isAddress(text: string): boolean {
  return [text, text.replace(PORT, '')].some((one) => isIP(one.replaceAll(/[[\]]/g, '')) !== 0);
}
