import type { IncomingHttpHeaders } from 'node:http';
import { BroomwagonError } from '@broomwagon/contracts';
import { isLoopback } from '../gateway.config';

/**
 * Without keys, a web page in a browser of this machine could call the gateway: by requests to the loopback address
 * (`Origin`, or `Sec-Fetch-Site` if there is no `Origin`), or under a name of its site that resolves to the loopback
 * address (`Host`). Only pages of this machine may call it.
 * @param publicUrl address of the gateway for its clients: its name is allowed as `Host`, and pages of this address
 * @param origins origins whose pages are allowed too
 * @throws BroomwagonError FORBIDDEN
 */
export function refuseOtherSites(
  headers: IncomingHttpHeaders,
  publicUrl?: string,
  origins: readonly string[] = [],
): void {
  const { host, origin, 'sec-fetch-site': site } = headers;
  const isOtherPage =
    origin === undefined ? site === 'cross-site' : !(isOwnPage(origin, publicUrl) || origins.includes(origin));
  const name = host === undefined ? 'localhost' : toHostname(`http://${host}`);
  const isOtherHost = !isLoopback(name) && (publicUrl === undefined || name !== toHostname(publicUrl));
  if (!isOtherPage && !isOtherHost) return;
  const message = 'With API_KEYS=off, only pages and names of localhost, PUBLIC_URL and CORS_ORIGINS are allowed';
  throw new BroomwagonError('FORBIDDEN', message);
}

/**
 * Whether a page is from a loopback address, or its scheme, name and port equal `publicUrl`: another port may be
 * another site.
 */
function isOwnPage(origin: string, publicUrl?: string): boolean {
  return isLoopback(toHostname(origin)) || (publicUrl !== undefined && origin === new URL(publicUrl).origin);
}

/** Address and host name of the last request: a new parse costs more than the rest of the check. */
let last = { url: '', name: '' };

/** The name or address of the host; empty for a text that is no URL. */
function toHostname(url: string): string {
  if (url !== last.url) last = { url, name: URL.canParse(url) ? new URL(url).hostname.replaceAll(/[[\]]/g, '') : '' };
  return last.name;
}
