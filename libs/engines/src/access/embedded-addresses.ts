import { isIPv6 } from 'node:net';

const IPV4_GROUPS = 2;
const GROUPS = 8;

/** Prefixes after which the last 32 bits are an address of IPv4: groups of 16 bits. */
const PREFIXES = [
  [0, 0, 0, 0, 0, 0], // compatible (RFC 4291)
  [0, 0, 0, 0, 0, 0xffff], // mapped (RFC 4291)
  [0, 0, 0, 0, 0xffff, 0], // translated (RFC 2765)
  [0x64, 0xff9b, 0, 0, 0, 0], // NAT64 (RFC 6052)
];
/** First groups of NAT64 addresses of a site (RFC 8215); the whole prefix may have any length. */
const SITE_NAT64 = [0x64, 0xff9b, 1];

/** The IPv4 addresses that an IPv6 address contains, in all known forms. */
export function embeddedIpv4(address: string): string[] {
  const groups = toGroups(address);
  if (groups === undefined) return [];
  const at = (index: number): string => toIpv4(groups[index]!, groups[index + 1]!);
  const begins = (prefix: number[]): boolean => prefix.every((group, index) => groups[index] === group);
  const found: string[] = [];
  const last = GROUPS - IPV4_GROUPS;
  if (PREFIXES.some(begins)) found.push(at(last));
  // 6to4 (RFC 3056)
  if (groups[0] === 0x2002) found.push(at(1));
  // Teredo (RFC 4380): the server, and the client with all its bits inverted.
  if (groups[0] === 0x2001 && groups[1] === 0) {
    found.push(at(2), toIpv4(groups[last]! ^ 0xffff, groups[last + 1]! ^ 0xffff));
  }
  // ISATAP (RFC 5214), below any prefix.
  if ((groups[4] === 0 || groups[4] === 0x200) && groups[5] === 0x5efe) found.push(at(last));
  if (begins(SITE_NAT64)) found.push(...siteAddresses(groups), at(last));
  return found;
}

/** The last 32 bits of an address of IPv6, written as IPv4: a site may have a NAT64 prefix that nobody else knows. */
export function lastIpv4(address: string): string | undefined {
  const groups = toGroups(address);
  return groups && toIpv4(groups[GROUPS - 2]!, groups[GROUPS - 1]!);
}

/** IPv4 addresses after prefixes of 48, 56 and 64 bits; the bits from 64 to 71 are left out (RFC 6052). */
function siteAddresses(groups: number[]): string[] {
  const bytes = groups.flatMap((group) => [group >> 8, group & 0xff]);
  const after = (start: number): string => {
    const rest = bytes.slice(start).filter((_, index) => start + index !== 8);
    return rest.slice(0, 4).join('.');
  };
  return [after(6), after(7), after(8)];
}

function toIpv4(high: number, low: number): string {
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}

/** Groups of 16 bits; undefined if the address is not IPv6. @param address may have a zone: `fe80::1%eth0` */
function toGroups(address: string): number[] | undefined {
  const plain = address.split('%', 1)[0]!;
  if (!isIPv6(plain)) return undefined;
  // `URL` converts a dotted end to hexadecimal groups.
  const [head = '', tail] = new URL(`http://[${plain}]`).hostname.slice(1, -1).split('::');
  const parse = (part = ''): number[] => (part === '' ? [] : part.split(':').map((group) => parseInt(group, 16)));
  const [before, after] = [parse(head), parse(tail)];
  return [...before, ...Array<number>(GROUPS - before.length - after.length).fill(0), ...after];
}
