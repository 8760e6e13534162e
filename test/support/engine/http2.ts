import { once } from 'node:events';
import { connect, type ClientHttp2Session, type IncomingHttpHeaders } from 'node:http2';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';

export interface Http2Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** A connection of HTTP/2 over TLS to a proxy on this port, closed after the test. */
export function http2Session(t: TestContext, port: number, ca: string): ClientHttp2Session {
  const session = connect(`https://localhost:${port}`, { ca });
  session.on('error', () => undefined); // each request has the error, too
  t.after(() => session.destroy());
  return session;
}

/** Sends a request. Resolves with the whole answer, and rejects when it is cut. */
export async function ask(
  session: ClientHttp2Session,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body?: string,
): Promise<Http2Reply> {
  const method = body === undefined ? 'GET' : 'POST';
  const request = session.request({ ':path': path, ':method': method, ...headers });
  request.end(body);
  const [came] = (await once(request, 'response')) as [IncomingHttpHeaders & { readonly ':status': number }];
  return { status: came[':status'], headers: came, text: await text(request) };
}
