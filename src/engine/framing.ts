/** In any letters, but ASCII ones: to toLowerCase the Kelvin sign is a k. */
const CHUNKED = /^chunked$/i;
/** token of RFC 9110, 5.6.2. */
const METHOD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** uri-host and port of RFC 9110, 7.2: a name, an IPv4 address or an IPv6 address in brackets; it may be empty. */
const HOST = /^(\[[0-9a-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(:\d*)?$/i;

/**
 * A request's head as both engines read it: names in lower case, values as latin1 text, and how often the names came that
 * say where a message ends and whom it is for.
 */
export class Head {
  /** No prototype: a header may be called `__proto__`. */
  readonly headers = Object.create(null) as Record<string, string | undefined>;
  private doubled = false;

  /** Takes one header line; repeated ones are joined by `, ` (RFC 9110, 5.3). */
  add(name: string, value: string): void {
    const earlier = this.headers[name];
    if (earlier === undefined) {
      this.headers[name] = value;
      return;
    }
    if (name === 'content-length' || name === 'host' || name === 'transfer-encoding') this.doubled = true;
    this.headers[name] = name === 'cookie' ? `${earlier}; ${value}` : `${earlier}, ${value}`;
  }

  /** Whether a body follows. Its length when it was announced, else null. */
  get bodyLength(): number | null {
    if (this.headers['transfer-encoding'] !== undefined) return null;
    return Number(this.headers['content-length'] ?? 0);
  }

  /**
   * Whether two readers could disagree about where this request ends (request smuggling: RFC 9112, 11.2), whom it is for, or
   * what it asks. The only safe answer is to close the connection.
   */
  ambiguous(method: string): boolean {
    const { host = '', 'content-length': length, 'transfer-encoding': coding } = this.headers;
    return (
      !METHOD.test(method) ||
      !HOST.test(host) ||
      this.doubled ||
      (length !== undefined && coding !== undefined) ||
      (coding !== undefined && !CHUNKED.test(coding)) ||
      (length !== undefined && !/^\d{1,15}$/.test(length)) ||
      // A body has no meaning there (RFC 9110, 9.3.1), and not every server between client and us reads it.
      ((method === 'GET' || method === 'HEAD') && this.bodyLength !== 0)
    );
  }
}
