import { readFileSync } from 'node:fs';

const UNSENT = 'net.ipv4.tcp_notsent_lowat';
/** The advised limit, in bytes. Streams lose no speed with it. */
const ADVISED = 65_536;
/**
 * The largest limit without a warning, in bytes. A stalled reader with a larger limit holds nearly as much as
 * the kernel's buffer grows to without any limit.
 */
const MOST = 1024 * 1024;

/**
 * A warning when the kernel's settings let slow readers hold much memory. null when the settings are fine or
 * unknown (not Linux). A stalled reader holds 2.2 MB of kernel memory without a limit on unsent bytes, and
 * 0.2 MB with the advised limit.
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
