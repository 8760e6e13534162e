/** How a request is sent. */
interface RequestForm {
  readonly accept: string;
  readonly coding: string;
  /** For If-None-Match. */
  readonly tag?: string | undefined;
}

/** Writes the requests to one server. Paths are those below the server's origin. */
export class Requests {
  readonly origin: URL;
  readonly #common: string;

  /** `key`: an API key, or null. */
  constructor(origin: URL, key: string | null) {
    this.origin = origin;
    this.#common = `Host: ${origin.host}\r\nUser-Agent: sluice-load\r\n${key === null ? '' : `Authorization: Bearer ${key}\r\n`}`;
  }

  get(path: string, { accept, coding, tag }: RequestForm): string {
    const condition = tag === undefined ? '' : `If-None-Match: ${tag}\r\n`;
    return `GET ${path} HTTP/1.1\r\n${this.#common}Accept: ${accept}\r\nAccept-Encoding: ${coding}\r\n${condition}\r\n`;
  }

  /** A request with a JSON body. Without a body: null. */
  write(method: 'PUT' | 'DELETE', path: string, body: object | null): string {
    // Bodies are sent as Latin-1, so they are escaped.
    const text = body === null ? '' : JSON.stringify(body);
    const head = body === null ? '' : `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n`;
    return `${method} ${path} HTTP/1.1\r\n${this.#common}Accept: application/json\r\n${head}\r\n${text}`;
  }
}
