/** The received content of a chunked answer. */
export function dechunked(answer: Buffer): Buffer {
  return Buffer.concat(chunksOf(answer));
}

/** The received chunks of a chunked answer, including the empty last one. */
export function chunksOf(answer: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = answer.indexOf('\r\n\r\n') + 4; at > 3 && at < answer.length;) {
    const line = answer.indexOf('\r\n', at);
    if (line < 0) break;
    const size = parseInt(answer.toString('latin1', at, line), 16);
    parts.push(answer.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
  return parts;
}

/** The end of a complete chunked answer. */
export const LAST_CHUNK = '\r\n0\r\n\r\n';
