import { readFileSync } from 'node:fs';

const UNSENT = 'net.ipv4.tcp_notsent_lowat';
/** What a stream loses no speed with. Bytes. */
const ADVISED = 65_536;
/** From here on it holds hardly less than the kernel's buffer would grow to without a limit. Bytes. */
const MOST = 1024 * 1024;

/**
 * What the kernel's settings make of slow readers, where that is bad; null where it is not, or is not known (not Linux).
 * A stalled reader holds 2.2 MB of the kernel's memory without a limit on what was not sent yet, 0.2 MB with the advised one.
 */
export function kernelWarning(directory = '/proc/sys'): string | null {
  let unsent;
  try {
    unsent = Number(readFileSync(`${directory}/${UNSENT.replaceAll('.', '/')}`, 'utf8'));
  } catch {
    return null; // not Linux, or hidden
  }
  return unsent > MOST
    ? `each slow reader may hold 2 MB of kernel memory: set it to 0.2 MB by sysctl -w ${UNSENT}=${ADVISED}`
    : null;
}
