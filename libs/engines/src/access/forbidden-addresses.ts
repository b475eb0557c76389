import { lookup, type LookupAddress, type LookupOptions } from 'node:dns';
import { BlockList, isIP } from 'node:net';

/** The code of the error of a name that resolves to an address that is never called. */
export const ADDRESS_REFUSED = 'ENGINE_ADDRESS_REFUSED';

/** Link-local addresses, and those under which clouds tell a machine its credentials. */
const FORBIDDEN = new BlockList();
FORBIDDEN.addSubnet('169.254.0.0', 16, 'ipv4');
FORBIDDEN.addSubnet('fe80::', 10, 'ipv6');
FORBIDDEN.addAddress('fd00:ec2::254', 'ipv6'); // AWS
FORBIDDEN.addAddress('fd20:ce::254', 'ipv6'); // Google
FORBIDDEN.addAddress('100.100.100.200', 'ipv4'); // Alibaba
FORBIDDEN.addAddress('192.0.0.192', 'ipv4'); // Oracle
FORBIDDEN.addAddress('168.63.129.16', 'ipv4'); // Azure
// The link-local range of IPv4 in NAT64; the mapped form (::ffff:a.b.c.d) is known to BlockList.
FORBIDDEN.addSubnet('64:ff9b::a9fe:0', 112, 'ipv6');

const METADATA_NAMES = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'instance-data',
  'instance-data.ec2.internal',
]);

/** @param host as {@link URL} has it, without brackets: decimal and hexadecimal forms of IPv4 are plain there */
export function isForbiddenHost(host: string): boolean {
  const version = isIP(host);
  if (version === 0) return METADATA_NAMES.has(host.replace(/\.+$/, ''));
  return FORBIDDEN.check(host, version === 4 ? 'ipv4' : 'ipv6');
}

type LookupCallback = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;
type Lookup = (hostname: string, options: LookupOptions, callback: LookupCallback) => void;

/** The lookup of connections to engines: names that resolve to a forbidden address are refused when they are called. */
export function guardedLookup(resolve: Lookup = lookup as Lookup): Lookup {
  return (hostname, options, callback) => {
    resolve(hostname, options, (error, address, family) => {
      const found = error ? [] : Array.isArray(address) ? address.map((one) => one.address) : [address];
      const refused = found.find(isForbiddenHost);
      if (refused === undefined) return callback(error, address, family);
      const message = `${hostname} resolves to ${refused}, a link-local or metadata address, which is never called`;
      callback(Object.assign(new Error(message), { code: ADDRESS_REFUSED }), address, family);
    });
  };
}
