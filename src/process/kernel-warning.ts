import { readFileSync } from 'node:fs';

const UNSENT = 'net.ipv4.tcp_notsent_lowat';
/** The advised limit, in bytes. Streams lose no speed with it. */
const ADVISED = 65_536;
/** Bytes. With a larger limit a stalled reader holds nearly as much as without any. */
const MOST = 1024 * 1024;

/**
 * A stalled reader holds 2.2 MB without a limit on unsent bytes, 0.2 MB with the advised one. null: fine or unknown.
 */
export function kernelWarning(directory = '/proc/sys'): string | null {
  let unsent;
  try {
    unsent = Number(readFileSync(`${directory}/${UNSENT.replaceAll('.', '/')}`, 'utf8'));
  } catch {
    return null; // not Linux, or hidden
  }
  return unsent > MOST
    ? `each slow reader may hold 2 MB of kernel memory: run sysctl -w ${UNSENT}=${ADVISED} to limit it to 0.2 MB`
    : null;
}
