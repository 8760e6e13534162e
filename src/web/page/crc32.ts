/** CRC-32 as in gzip, over bytes that come in pieces. */
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? 0xedb88320 ^ (crc >>> 1) : crc >>> 1;
  return crc >>> 0;
});

/** The CRC-32 of all bytes, from that of the bytes before. */
export function crc32(bytes: Uint8Array, before: number): number {
  let crc = ~before;
  // An index is several times as fast here as an iterator.
  // eslint-disable-next-line @typescript-eslint/prefer-for-of
  for (let at = 0; at < bytes.length; at++) crc = (crc >>> 8) ^ (TABLE[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0);
  return ~crc >>> 0;
}

/** As control lines write it. */
export function crcText(crc: number): string {
  return crc.toString(16).padStart(8, '0');
}
