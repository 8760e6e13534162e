import { randomBytes } from 'node:crypto';

/** How a request is sent. */
interface RequestForm {
  readonly accept: string;
  readonly coding: string;
  /** For If-None-Match. */
  readonly tag?: string | undefined;
  /** The id of the trace that it begins, and that is sampled. null: none. */
  readonly trace?: string | null;
}

/** Writes the requests to one server. Paths are those below the server's origin. */
export class Requests {
  readonly origin: URL;
  readonly #common: string;
  readonly #areTraced: boolean;

  /** `key`: an API key, or null. `areTraced`: whether each request may begin a trace. */
  constructor(origin: URL, key: string | null, areTraced = false) {
    this.origin = origin;
    this.#areTraced = areTraced;
    this.#common = `Host: ${origin.host}\r\nUser-Agent: sluice-load\r\n${key === null ? '' : `Authorization: Bearer ${key}\r\n`}`;
  }

  /** The id of a new trace for a request. null: requests begin none. */
  newTrace(): string | null {
    return this.#areTraced ? randomBytes(16).toString('hex') : null;
  }

  get(path: string, { accept, coding, tag, trace = null }: RequestForm): string {
    const condition = tag === undefined ? '' : `If-None-Match: ${tag}\r\n`;
    const traced = trace === null ? '' : `traceparent: 00-${trace}-${trace.slice(16)}-01\r\n`;
    return `GET ${path} HTTP/1.1\r\n${this.#common}Accept: ${accept}\r\nAccept-Encoding: ${coding}\r\n${condition}${traced}\r\n`;
  }

  /** A request with a JSON body. Without a body: null. */
  write(method: 'PUT' | 'DELETE', path: string, body: object | null): string {
    // Bodies are sent as Latin-1, so they are escaped.
    const text = body === null ? '' : JSON.stringify(body);
    const head = body === null ? '' : `Content-Type: application/json\r\nContent-Length: ${text.length}\r\n`;
    return `${method} ${path} HTTP/1.1\r\n${this.#common}Accept: application/json\r\n${head}\r\n${text}`;
  }
}
