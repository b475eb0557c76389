import type { IncomingHttpHeaders } from 'node:http';
import { BroomwagonError } from '@broomwagon/contracts';
import { isLoopback } from '../gateway.config';

/**
 * Without keys, a web page in a browser of this machine could call the gateway: by requests to the loopback address
 * (`Origin`, or `Sec-Fetch-Site` if there is no `Origin`), or under a name of its own that it lets point to the
 * loopback address (`Host`). Only pages of this machine may.
 * @throws BroomwagonError FORBIDDEN
 */
export function refuseOtherSites({ host, origin, 'sec-fetch-site': site }: IncomingHttpHeaders): void {
  const isOther =
    site === 'cross-site' ||
    (origin !== undefined && !isOfThisMachine(origin)) ||
    (host !== undefined && !isOfThisMachine(`http://${host}`));
  if (!isOther) return;
  const message = 'With API_KEYS=off, requests of web pages and requests to other names than localhost are refused';
  throw new BroomwagonError('FORBIDDEN', message);
}

function isOfThisMachine(url: string): boolean {
  return URL.canParse(url) && isLoopback(new URL(url).hostname.replaceAll(/[[\]]/g, ''));
}
