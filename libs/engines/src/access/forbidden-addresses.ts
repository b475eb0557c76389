import { lookup, type LookupAddress, type LookupOptions } from 'node:dns';
import { BlockList, isIP } from 'node:net';
import { embeddedIpv4, lastIpv4 } from './embedded-addresses';

/** Code of the error for a name that resolves to a forbidden address. */
export const ADDRESS_REFUSED = 'ENGINE_ADDRESS_REFUSED';

/**
 * IPv4 addresses where clouds serve credentials to a machine; the addresses of AWS, Google and Azure are link-local.
 */
const METADATA_IPV4 = ['169.254.169.254', '100.100.100.200', '192.0.0.192', '168.63.129.16'];

/** Link-local addresses, and addresses of metadata services. */
const FORBIDDEN = new BlockList();
for (const address of METADATA_IPV4) FORBIDDEN.addAddress(address, 'ipv4');
FORBIDDEN.addSubnet('169.254.0.0', 16, 'ipv4');
FORBIDDEN.addSubnet('fe80::', 10, 'ipv6');
FORBIDDEN.addAddress('fd00:ec2::254', 'ipv6'); // AWS
FORBIDDEN.addAddress('fd20:ce::254', 'ipv6'); // Google

const METADATA_NAMES = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'instance-data',
  'instance-data.ec2.internal',
]);

/** @param host host of a {@link URL}, without brackets: `URL` has converted decimal and hexadecimal forms of IPv4 */
export function isForbiddenHost(host: string): boolean {
  const version = isIP(host);
  if (version === 0) return METADATA_NAMES.has(host.replace(/\.+$/, ''));
  if (version === 4) return FORBIDDEN.check(host, 'ipv4');
  const isEmbedded = embeddedIpv4(host).some((address) => FORBIDDEN.check(address, 'ipv4'));
  return isEmbedded || METADATA_IPV4.includes(lastIpv4(host)!) || FORBIDDEN.check(host.split('%', 1)[0]!, 'ipv6');
}

type LookupCallback = (error: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;
type Lookup = (hostname: string, options: LookupOptions, callback: LookupCallback) => void;

/** Lookup for connections to engines: a name that resolves to a forbidden address is refused at each call. */
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
