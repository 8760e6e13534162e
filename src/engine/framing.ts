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
   * Whether two readers could disagree about where this request ends (request smuggling: RFC 9112, 11.2), its host,
   * or its target. Closing the connection is the only safe answer.
   */
  ambiguous(method: string): boolean {
    const { host = '', 'content-length': length, 'transfer-encoding': coding } = this.headers;
    return (
      !METHOD.test(method) ||
      !HOST.test(host) ||
      this.#doubled ||
      (length !== undefined && coding !== undefined) ||
      (coding !== undefined && !CHUNKED.test(coding)) ||
      (length !== undefined && !/^\d{1,15}$/.test(length)) ||
      // A body has no meaning there (RFC 9110, 9.3.1), and not every server between the client and us reads it.
      ((method === 'GET' || method === 'HEAD') && this.bodyLength !== 0)
    );
  }
}
