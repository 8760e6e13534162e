import { isIPv4 } from 'node:net';

const MAPPED_PREFIX = Buffer.from('00000000000000000000ffff', 'hex');

/**
 * Formats an address of 4 or 16 bytes as text. IPv4-mapped addresses become IPv4, so that a client has the same
 * address on every listener.
 */
export function addressFromBytes(bytes: Uint8Array): string {
  if (bytes.length === 4) return dotted(bytes, 0);
  if (bytes.length !== 16) return '';
  if (MAPPED_PREFIX.equals(bytes.subarray(0, 12))) return dotted(bytes, 12);
  const groups = Array.from({ length: 8 }, (_, i) =>
    (((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0)).toString(16),
  );
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1); // shortened as RFC 5952 has it
}

/** Four bytes as IPv4 text. `join` of a typed array takes ten times as long. */
function dotted(bytes: Uint8Array, at: number): string {
  return `${bytes[at]}.${bytes[at + 1]}.${bytes[at + 2]}.${bytes[at + 3]}`;
}

/** Converts node's text for a peer to the form of `addressFromBytes`. */
export function addressFromText(text: string | undefined): string {
  if (text === undefined) return '';
  const mapped = text.toLowerCase().startsWith('::ffff:') ? text.slice(7) : '';
  return isIPv4(mapped) ? mapped : text.replace(/%.*$/, '');
}

/** The URL of a server that listens there: `http://[::1]:3000`. */
export function urlOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The URL under which this machine reaches a server that listens on all of its addresses; any other as it is. */
export function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}
