import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import {
  newNotes,
  type EngineOptions,
  type Reply,
  type Request,
  type Serve,
} from '../../../src/engine/edge.ts';
import { createEngine } from '../../../src/engine/engine.ts';
import type { Sink } from '../../../src/pipeline/sink.ts';

export type EngineName = 'uws' | 'node';

/**
 * The reason why uWebSockets.js does not run here. null when it does. With REQUIRE_ALL=1 its tests run, and
 * fail, all the same.
 */
export function whyNoUws(): string | null {
  if (process.env.REQUIRE_ALL === '1') return null;
  try {
    createEngine(
      'uws',
      engineOptions(() => Promise.reject(new Error('not asked'))),
    );
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function engineOptions(serve: Serve) {
  return {
    serve,
    bodyLimit: 1000,
    stallTimeoutMs: 60_000,
    quietMs: 200,
    keepAliveMs: 75_000,
    onError: () => undefined,
    cacheDirectory: join(tmpdir(), `sluice-test-addon-${process.getuid?.() ?? 0}`),
  };
}

export interface Served {
  readonly port: number;
  /** The errors passed to `onError`. */
  readonly errors: unknown[];
  readonly stop: (graceMs: number) => Promise<void>;
}

/** Starts an engine, of the kind that a contract runs on, on a free port. */
export type Serving = (t: TestContext, serve: Serve, overrides?: Partial<EngineOptions>) => Promise<Served>;

/** An engine on a free port. It is stopped after the test. */
export async function serveWith(
  t: TestContext,
  name: EngineName,
  serve: Serve,
  { host = '127.0.0.1', ...overrides }: Partial<EngineOptions> & { readonly host?: string } = {},
): Promise<Served> {
  const errors: unknown[] = [];
  const { engine } = createEngine(name, {
    ...engineOptions(serve),
    onError: (error) => errors.push(error),
    ...overrides,
  });
  const port = await engine.listen(host, 0);
  t.after(() => engine.stop(0));
  return { port, errors, stop: (graceMs) => engine.stop(graceMs) };
}

export function text(body: string, status = 200, headers: Reply['headers'] = {}): Reply {
  return { status, headers, body: { kind: 'bytes', bytes: Buffer.from(body) } };
}

export function stream(run: (sink: Sink) => Promise<void>, headers: Reply['headers'] = {}): Reply {
  return { status: 200, headers, body: { kind: 'stream', run } };
}

/** A request as an engine passes it on, of GET without a query, headers and a body but for what is given. */
export function requestOf(given: Partial<Request> = {}): Request {
  return {
    method: 'GET',
    path: '/',
    query: '',
    headers: {},
    address: '192.0.2.7',
    notes: newNotes(),
    signal: new AbortController().signal,
    body: () => Promise.resolve(new Uint8Array(0)),
    ...given,
  };
}

/** What a handler sees of a request. */
export async function received(request: Request) {
  const { method, path, query, headers, address } = request;
  return {
    method,
    path,
    query,
    headers,
    address,
    body: Buffer.from(await request.body()).toString('latin1'),
  };
}

/** A handler that answers with the request it received, as JSON. */
export async function echo(request: Request): Promise<Reply> {
  return text(JSON.stringify(await received(request)));
}
