import { BlockList, isIPv4, isIPv6, SocketAddress } from 'node:net';

/** Words in TRUSTED_PROXIES. `loopback`: this machine. `private`: private networks (RFC 1918, RFC 4193). */
const WORDS: ReadonlyMap<string, readonly string[]> = new Map([
  ['loopback', ['127.0.0.0/8', '::1/128']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']],
]);

/** Whether an address in canonical form belongs to a trusted proxy. */
export type Trusts = (address: string) => boolean;

/**
 * The canonical text of an address; null when it is none. IPv4-mapped IPv6 (RFC 4291, 2.5.5.2) becomes IPv4. IPv6 is in
 * lower case and compressed (RFC 5952), without its zone. IPv4 must have exactly four decimal parts.
 */
export function canonicalAddress(text: string): string | null {
  if (isIPv4(text)) return text;
  if (!isIPv6(text)) return null;
  const { address } = new SocketAddress({ address: text.replace(/%.*$/, ''), family: 'ipv6' });
  const mapped = address.startsWith('::ffff:') ? address.slice(7) : '';
  return isIPv4(mapped) ? mapped : address;
}

/** Parses addresses, ranges (`10.1.0.0/16`, `2001:db8::/32`), `loopback` and `private`, by commas. Empty: none. */
export function parseTrustedProxies(text = ''): {
  readonly trusts: Trusts;
  readonly faults: readonly string[];
} {
  const list = new BlockList();
  const faults: string[] = [];
  for (const entry of text.split(',').map((part) => part.trim())) {
    if (entry === '') continue;
    for (const range of WORDS.get(entry.toLowerCase()) ?? [entry]) {
      if (!add(list, range)) {
        faults.push(
          `TRUSTED_PROXIES must be addresses, ranges such as 10.0.0.0/8, or ${[...WORDS.keys()].join(', ')}; ` +
            `got ${JSON.stringify(entry)}`,
        );
      }
    }
  }
  const isEmpty = list.rules.length === 0;
  return {
    trusts: (address) => !isEmpty && list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6'),
    faults,
  };
}

function add(list: BlockList, range: string): boolean {
  const [text = '', length, ...more] = range.split('/');
  const address = canonicalAddress(text);
  if (address === null || more.length > 0) return false;
  const family = isIPv4(address) ? 'ipv4' : 'ipv6';
  const bits = family === 'ipv4' ? 32 : 128;
  // A range of mapped addresses would need another length. IPv4 ranges must be written as IPv4.
  if (length !== undefined && family === 'ipv4' && text.includes(':')) return false;
  if (length !== undefined && (!/^\d{1,3}$/.test(length) || Number(length) > bits)) return false;
  list.addSubnet(address, Number(length ?? bits), family);
  return true;
}
