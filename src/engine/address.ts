/** An address of 4 or 16 bytes as text, which is not shortened. Empty: the system does not name the peer. */
export function addressFromBytes(bytes: Uint8Array): string {
  // `join` of a typed array takes ten times as long.
  if (bytes.length === 4) return `${bytes[0]}.${bytes[1]}.${bytes[2]}.${bytes[3]}`;
  const groups = Array.from({ length: bytes.length / 2 }, (_, i) =>
    (((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0)).toString(16),
  );
  return groups.join(':');
}

/** The URL of a server that listens there: `http://[::1]:3000`. */
export function urlOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The URL under which this machine reaches a server that listens on all of its addresses; any other as it is. */
export function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}
