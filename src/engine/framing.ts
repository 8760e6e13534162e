/** Case-insensitive for ASCII letters only: toLowerCase turns the Kelvin sign into a k. */
const CHUNKED = /^chunked$/i;
/** token of RFC 9110, 5.6.2. */
const METHOD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** uri-host and port of RFC 9110, 7.2: a name, an IPv4 address or an IPv6 address in brackets. It may be empty. */
const HOST = /^(\[[0-9a-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(:\d*)?$/i;

/** The head of a request: names in lower case, values as latin1 text. It notes repeated framing headers and Host. */
export class Head {
  /** Has no prototype, because a header may be named `__proto__`. */
  readonly headers = Object.create(null) as Record<string, string | undefined>;
  #doubled = false;

  /** Adds one header line. Repeated headers are joined by `, ` (RFC 9110, 5.3). */
  add(name: string, value: string): void {
    const earlier = this.headers[name];
    if (earlier === undefined) {
      this.headers[name] = value;
      return;
    }
    if (name === 'content-length' || name === 'host' || name === 'transfer-encoding') this.#doubled = true;
    this.headers[name] = name === 'cookie' ? `${earlier}; ${value}` : `${earlier}, ${value}`;
  }

  /** The length of the body in bytes: 0 when there is none, null when its length was not announced. */
  get bodyLength(): number | null {
    if (this.headers['transfer-encoding'] !== undefined) return null;
    return Number(this.headers['content-length'] ?? 0);
  }

  /**
   * Why two readers could disagree about where this request ends (request smuggling: RFC 9112, 11.2), or about its host.
   * Nothing behind such a request may be read. null: they could not.
   */
  fault(method: string): string | null {
    const { host, 'content-length': length, 'transfer-encoding': coding } = this.headers;
    if (!METHOD.test(method)) return 'The method is not a token of RFC 9110.';
    if (host === undefined || !HOST.test(host)) return 'The request needs one Host header with a host.';
    if (this.#doubled) return 'Host, Content-Length or Transfer-Encoding is given twice.';
    if (length !== undefined && coding !== undefined)
      return 'Content-Length and Transfer-Encoding exclude each other.';
    if (coding !== undefined && !CHUNKED.test(coding)) return 'Transfer-Encoding can only be chunked.';
    if (length !== undefined && !/^\d{1,15}$/.test(length)) return 'Content-Length must be one number.';
    return null;
  }
}

/** The answer to a request that is not read. It closes the connection. */
export const REFUSED = { status: 400, contentType: 'text/plain; charset=utf-8' } as const;

/** Bodies of these methods have no meaning (RFC 9110, 9.3): they are read and dropped. */
export function dropsBody(method: string): boolean {
  return method === 'DELETE' || endsWithBody(method);
}

/**
 * Methods whose bodies some servers on the way do not read, and take for the next request. The connection ends behind
 * such a body.
 */
export function endsWithBody(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}
