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
   * Whether two readers could disagree about where this request ends: request smuggling (RFC 9112, 11.2). The only safe
   * answer is to close the connection.
   */
  ambiguous(method: string): boolean {
    const length = this.headers['content-length'];
    const coding = this.headers['transfer-encoding'];
    return (
      this.doubled ||
      (length !== undefined && coding !== undefined) ||
      (coding !== undefined && coding.toLowerCase() !== 'chunked') ||
      (length !== undefined && !/^\d{1,15}$/.test(length)) ||
      // A body has no meaning there (RFC 9110, 9.3.1), and not every server between client and us reads it.
      ((method === 'GET' || method === 'HEAD') && this.bodyLength !== 0)
    );
  }
}
