import { isIP } from 'node:net';
import { AppError } from '../base/errors.ts';

/** ALLOWED_HOSTS: names of DNS without ports, separated by commas. */
export const HOSTS_FORM = '^[\\w-][\\w.-]*( *, *[\\w-][\\w.-]*)*$';

/** Why a request with this Host header is refused; null: it is not. */
export type HostCheck = (host: string | undefined) => AppError | null;

/** A host of RFC 9110, 7.2: an address in brackets, or what stands before the port, without the dot of the root of DNS. */
const FORM = /^(?:\[([^\]]*)\]|([^:]*?)\.?)(?::\d*)?$/;

/**
 * Refuses what a browser sends for a page of another site: a name whose owner makes it resolve to this server (DNS
 * rebinding), so that the browser lets the page read the answers. Nobody can do that with an address, with `localhost`
 * and names below it (RFC 6761, 6.3), or with `names`, which the operator chose.
 */
export function createHostCheck(names: readonly string[]): HostCheck {
  const own = new Set([...names.map(nameOf), 'localhost']);
  return (host = '') => {
    const name = nameOf(host);
    return isIP(name) !== 0 || own.has(name) || name.endsWith('.localhost') ? null : misdirected();
  };
}

/** ALLOWED_HOSTS as a list. */
export function parseHosts(text: string): readonly string[] {
  return text.split(',').map((name) => name.trim());
}

function nameOf(host: string): string {
  const [, address, name = host] = FORM.exec(host) ?? [];
  return (address ?? name).toLowerCase();
}

function misdirected(): AppError {
  return new AppError(
    'misdirected-request',
    'The Host header must be an IP address, localhost, or a name that the operator of the server lists in ALLOWED_HOSTS, because the server asks for no API key.',
  );
}
