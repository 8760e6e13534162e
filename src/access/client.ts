import { isIPv4 } from 'node:net';
import type { Request } from '../engine/edge.ts';
import { canonicalAddress, type Trusts } from './proxies.ts';
import { RecentMap } from '../base/recent-map.ts';

/** The number of addresses in one generation, of which two are kept. */
const REMEMBERED = 8192;
/** The length of the longest address with brackets, zone and port. A longer text is not an address. */
const LONGEST_ENTRY = 64;
/** The client of connections whose peer the system does not name. */
const UNKNOWN: ClientAddress = { address: 'unknown', client: 'unknown', trusted: false };

interface ClientAddress {
  readonly address: string;
  readonly client: string;
  readonly trusted: boolean;
}

export interface ClientReaderOptions {
  readonly trusts: Trusts;
  /** Called at most once, when forwarded headers come from a peer that is not trusted. */
  readonly onWarning: (message: string) => void;
}

export type ClientReader = (request: Pick<Request, 'address' | 'headers'>) => string;

/**
 * Returns the name of a client for the limits when no key identifies it: its IPv4 address, or its IPv6 network of 64
 * bits (a host has a whole one for itself, RFC 4862). All notations of one address give the same text.
 *
 * X-Forwarded-For of a trusted proxy is read from the right. Every proxy appends the address that sent it the
 * request, so the first address that is not trusted is the last one that is known; anything left of it may be forged.
 * An entry that is not an address ends the reading at the proxy that wrote it. `Forwarded` (RFC 7239) is not read,
 * because a proxy that sets only X-Forwarded-For passes on whatever a client wrote there.
 */
export function createClientReader({ trusts, onWarning }: ClientReaderOptions): ClientReader {
  const known = rememberAddresses(trusts);
  let warned = false;
  const warn = (message: string) => {
    if (!warned) onWarning(message);
    warned = true;
  };
  return ({ address, headers }) => {
    const peer = known(address) ?? UNKNOWN;
    const forwarded = headers['x-forwarded-for'];
    if (forwarded === undefined) {
      if (headers.forwarded !== undefined)
        warn(`ignored the Forwarded header from ${peer.address}, which is not supported: ${CONSEQUENCE}`);
      return peer.client;
    }
    if (peer.trusted) return behind(peer, forwarded, known).client;
    warn(
      `ignored the X-Forwarded-For header from ${peer.address}, which TRUSTED_PROXIES does not list: ${CONSEQUENCE}`,
    );
    return peer.client;
  };
}

const CONSEQUENCE = 'all clients behind it count as one (logged once)';

/** Returns the client behind a trusted proxy. When all entries are trusted, that is the farthest of them. */
function behind(
  peer: ClientAddress,
  forwarded: string,
  known: (text: string) => ClientAddress | null,
): ClientAddress {
  let last = peer;
  for (let end = forwarded.length; end >= 0 && last.trusted;) {
    const comma = end === 0 ? -1 : forwarded.lastIndexOf(',', end - 1);
    const entry = forwarded.slice(comma + 1, end).trim();
    end = comma;
    if (entry === '') continue; // An empty list element has no meaning (RFC 9110, 5.6.1.2).
    const hop = known(entry);
    if (hop === null) return last;
    last = hop;
  }
  return last;
}

/** Parses an address once and remembers the result; null when the text is not an address. */
function rememberAddresses(trusts: Trusts): (text: string) => ClientAddress | null {
  const recent = new RecentMap<ClientAddress | null>(REMEMBERED);
  return (text) => {
    const remembered = recent.get(text);
    if (remembered !== undefined) return remembered;
    if (text.length > LONGEST_ENTRY) return null;
    // A slice of a header keeps the whole header in memory, so a copy is remembered.
    const copy = Buffer.from(text, 'latin1').toString('latin1');
    const known = look(copy, trusts);
    recent.set(copy, known);
    return known;
  };
}

function look(text: string, trusts: Trusts): ClientAddress | null {
  const [, inBrackets, withPort] = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/.exec(text) ?? [];
  const address = canonicalAddress(inBrackets ?? withPort ?? text);
  if (address === null) return null;
  return { address, client: isIPv4(address) ? address : network(address), trusted: trusts(address) };
}

/** The first 64 bits of an IPv6 address in canonical form. */
function network(address: string): string {
  const [head = [], tail] = address
    .split('::')
    .map((part) => part.split(':').filter((group) => group !== ''));
  const zeros = tail === undefined ? 0 : 8 - head.length - tail.length;
  const groups = [...head, ...Array<string>(zeros).fill('0'), ...(tail ?? [])];
  return `${groups.slice(0, 4).join(':')}::/64`;
}
