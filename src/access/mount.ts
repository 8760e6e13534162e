import type { Request } from '../engine/edge.ts';
import { canonicalAddress, type Trusts } from './proxies.ts';

/** The path under which a client reaches this server: empty, or such as `/data/v1`. */
export type MountReader = (request: Pick<Request, 'address' | 'headers'>) => string;

interface MountReaderOptions {
  readonly trusts: Trusts;
  /** Called at most once, when a header is not believed. */
  readonly onWarning: (message: string) => void;
}

/** Characters of a path in RFC 3986, 3.3, without the comma, by which engines join repeated headers. */
const FORM = /^(?:\/(?:[\w.~!$&'()*+;=:@-]|%[\dA-Fa-f]{2})+)+\/?$/;
/** What URL parsers take for the folder itself or the one above. */
const DOTS = /\/(?:\.|%2e){1,2}(?=\/|$)/i;
const LONGEST = 256;

/**
 * Reads X-Forwarded-Prefix of a trusted proxy: the path that the proxy takes off before it asks this server. Links begin
 * with it, so only a path is accepted. `//host` would lead to another host, and dots out of the path.
 */
export function createMountReader({ trusts, onWarning }: MountReaderOptions): MountReader {
  let warned = false;
  const warn = (message: string) => {
    if (!warned) onWarning(message);
    warned = true;
    return '';
  };
  return ({ address, headers }) => {
    const prefix = headers['x-forwarded-prefix'];
    if (prefix === undefined || prefix === '' || prefix === '/') return '';
    const peer = canonicalAddress(address);
    if (peer === null || !trusts(peer))
      return warn(
        `ignored the X-Forwarded-Prefix header from ${peer ?? 'an unknown peer'}, which TRUSTED_PROXIES does not list: links lack the prefix (logged once)`,
      );
    if (prefix.length > LONGEST || !FORM.test(prefix) || DOTS.test(prefix))
      return warn(
        `ignored the X-Forwarded-Prefix header from ${peer}, which is no path such as /data/v1: links lack the prefix (logged once)`,
      );
    return prefix.endsWith('/') ? prefix.slice(0, -1) : prefix;
  };
}
