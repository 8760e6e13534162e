import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it, type TestContext } from 'node:test';
import { compress, codings } from '../src/stream/compress.ts';
import type { Serve } from '../src/http/edge.ts';
import { deferred, rawExchange, RawClient, request } from './support/raw.ts';
import { echo, serveWith, stream, text, type EngineName, type Served } from './support/engines.ts';

interface Echoed {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly address: string;
  readonly body: string;
}

/** What every engine promises in src/http/edge.ts, but for what needs slow readers: see engine-slow.contract.ts. */
export function engineContract(name: EngineName): void {
  const serving = (t: TestContext, serve: Serve, overrides = {}): Promise<Served> =>
    serveWith(t, name, serve, overrides);

  /** One request on its own connection, answered by echo. */
  async function echoed(t: TestContext, raw: string): Promise<Echoed> {
    const { port } = await serving(t, echo);
    const client = await RawClient.connect(t, port);
    const answer = await client.send(raw).until((came) => came.endsWith('}'));
    return JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))) as Echoed;
  }

  describe('requests', () => {
    it('come with method, path, query and headers as they were sent', async (t) => {
      const seen = await echoed(
        t,
        'GET /a%2Fb/%zz//c?x=%zz&x=1&=&?#  HTTP/1.1\r\nHost: test\r\nX-One: 1\r\nx-one:  2 \r\n__proto__: evil\r\n\r\n'.replace(
          '#  ',
          ' ',
        ),
      );
      assert.equal(seen.method, 'GET');
      assert.equal(seen.path, '/a%2Fb/%zz//c');
      assert.equal(seen.query, 'x=%zz&x=1&=&?');
      assert.equal(seen.headers['x-one'], '1, 2');
      assert.equal(Object.entries(seen.headers).find(([key]) => key === '__proto__')?.[1], 'evil');
      assert.equal(seen.address, '127.0.0.1');
      assert.equal(seen.body, '');
    });

    it('of every method reach the application', async (t) => {
      for (const method of ['OPTIONS', 'DELETE', 'PATCH', 'PUT', 'POST', 'TRACE', 'PROPFIND']) {
        const seen = await echoed(t, request('/x', ['Content-Length: 0'], method));
        assert.equal(seen.method, method);
      }
    });

    it('come with their body, whole, however it is framed and cut', async (t) => {
      const { port } = await serving(t, echo);
      const framings: [string, string[]][] = [
        ['Content-Length: 10', ['01234', '56789']],
        ['Transfer-Encoding: chunked', ['5\r\n01234\r\n5\r', '\n56789\r\n0\r\n', '\r\n']],
      ];
      for (const [header, pieces] of framings) {
        const client = await RawClient.connect(t, port);
        client.send(request('/body', [header], 'POST'));
        for (const piece of pieces) {
          client.send(piece);
          await new Promise((resolve) => setImmediate(resolve));
        }
        assert.match(await client.until((came) => came.endsWith('}')), /"body":"0123456789"/);
      }
    });

    it('with a body that nobody asks for are answered once it has come', async (t) => {
      const { port } = await serving(t, () => Promise.resolve(text('not wanted', 405)));
      const client = await RawClient.connect(t, port);
      client.send(request('/x', ['Content-Length: 5'], 'POST') + '12345' + request('/y'));
      const came = await client.until((all) => all.split('not wanted').length === 3);
      assert.equal(came.match(/HTTP\/1.1 405/g)?.length, 2);
    });

    it('of DELETE have no body, whatever is sent', async (t) => {
      const seen = await echoed(t, request('/x', ['Content-Length: 5'], 'DELETE') + '12345');
      assert.equal(seen.body, '');
    });
  });

  describe('a body', () => {
    const answering: Serve = async (incoming) => {
      try {
        return text(`took ${(await incoming.body()).length}`);
      } catch (error) {
        return text((error as { code: string }).code, 413);
      }
    };

    it('of the limit is taken, and of one byte more is refused, with and without a length', async (t) => {
      const { port } = await serving(t, answering, { bodyLimit: 1000 });
      for (const [bytes, expected] of [
        [1000, /^HTTP\/1.1 200 .*took 1000$/s],
        [1001, /^HTTP\/1.1 413 .*body-too-large$/s],
      ] as const) {
        const body = 'x'.repeat(bytes);
        for (const raw of [
          request('/', [`Content-Length: ${bytes}`], 'POST') + body,
          `${request('/', ['Transfer-Encoding: chunked'], 'POST')}${bytes.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
        ]) {
          const client = await RawClient.connect(t, port);
          assert.match(await client.send(raw).until((came) => /took \d+|large/.test(came)), expected);
          // Read to its end, so the connection goes on.
          client.text = '';
          client.send(request('/again', ['Content-Length: 2'], 'POST') + 'ok');
          assert.match(await client.until((came) => came.includes('took 2')), /200/);
        }
      }
    });

    it('without end is refused, and the connection closed, without being kept in memory', async (t) => {
      const { port } = await serving(t, answering, { bodyLimit: 1000 });
      const client = await RawClient.connect(t, port);
      client.send(request('/', ['Transfer-Encoding: chunked'], 'POST'));
      const piece = `${(65_536).toString(16)}\r\n${'x'.repeat(65_536)}\r\n`;
      let sent = 0;
      while (!client.closed && sent < 64 * 1024 * 1024) {
        sent += piece.length;
        if (!client.socket.write(piece)) {
          await Promise.race([once(client.socket, 'drain'), once(client.socket, 'close')]).catch(
            () => undefined,
          );
        }
      }
      await client.untilClosed();
      assert.ok(sent < 64 * 1024 * 1024, 'the connection was closed while the client was still sending');
    });

    it('that the client gives up rejects', async (t) => {
      const rejected = deferred<unknown>();
      const { port } = await serving(t, async (incoming) => {
        await incoming.body().catch(rejected.resolve);
        return text('too late');
      });
      const client = await RawClient.connect(t, port);
      client.send(request('/', ['Content-Length: 500'], 'POST') + 'abc');
      client.socket.end();
      client.socket.destroy();
      assert.match(String(await rejected.promise), /client closed/);
    });
  });

  describe('an answer', () => {
    it('carries status, headers, Date and its exact length, and the connection goes on', async (t) => {
      const { port } = await serving(t, ({ path }) =>
        Promise.resolve(text(`at ${path}`, 201, { 'x-a': 'é' })),
      );
      const client = await RawClient.connect(t, port);
      for (const path of ['/one', '/two', '/three']) {
        client.text = '';
        const came = await client.send(request(path)).until((all) => all.endsWith(path));
        assert.match(came, /^HTTP\/1.1 201 Created\r\n/);
        assert.match(came, /\r\nx-a: \xe9\r\n/i);
        assert.match(came, /\r\ndate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n/i);
        assert.match(came, new RegExp(`\r\ncontent-length: ${3 + path.length}\r\n`, 'i'));
      }
    });

    it('without a body says so: 200 with length 0, 204 and 304 with none', async (t) => {
      const { port } = await serving(t, ({ path }) =>
        Promise.resolve({ status: Number(path.slice(1)), headers: {}, body: { kind: 'none' as const } }),
      );
      const client = await RawClient.connect(t, port);
      const came = await client
        .send(request('/200') + request('/204') + request('/304') + request('/404', ['Connection: close']))
        .untilClosed();
      const [ok, noContent, notModified, notFound] = came.split(/(?=HTTP\/1.1)/);
      assert.match(ok ?? '', /^HTTP\/1.1 200 .*content-length: 0\r\n(.*\r\n)?\r\n$/is);
      assert.match(notFound ?? '', /^HTTP\/1.1 404 .*content-length: 0\r\n(.*\r\n)?\r\n$/is);
      for (const head of [noContent, notModified]) {
        assert.match(head ?? '', /^HTTP\/1.1 [23]04 .*\r\n\r\n$/s);
        assert.doesNotMatch(head ?? '', /content-length|transfer-encoding/i);
      }
    });

    it('to HEAD has a head and nothing else, whatever the reply says', async (t) => {
      let ran = 0;
      const bodies = {
        '/head': { kind: 'head', length: 12_345 },
        '/bytes': { kind: 'bytes', bytes: Buffer.from('four') },
        '/none': { kind: 'none' },
        '/stream': {
          kind: 'stream',
          run: async (sink: { write(chunk: Uint8Array): unknown }) => {
            ran++;
            await sink.write(Buffer.from('never'));
          },
        },
      } as const;
      const { port } = await serving(t, ({ path }) =>
        Promise.resolve({ status: 200, headers: {}, body: bodies[path as keyof typeof bodies] }),
      );
      const lengths = { '/head': '12345', '/bytes': '4', '/none': undefined, '/stream': undefined };
      for (const [path, length] of Object.entries(lengths)) {
        const came = await rawExchange(t, port, request(path, ['Connection: close'], 'HEAD'));
        assert.match(came, /^HTTP\/1.1 200 OK\r\n.*\r\n\r\n$/s);
        assert.equal(/\r\ncontent-length: (\d+)\r\n/i.exec(came)?.[1], length);
      }
      assert.equal(ran, 1, 'a stream is run even when nobody reads it: it holds resources');
    });

    it('with a header that must not be sent becomes a 500, and nothing of it is on the wire', async (t) => {
      const bad: Record<string, string>[] = [
        { 'x-a': 'b\r\nset-cookie: stolen=1' },
        { 'x-a': 'b\nset-cookie: stolen=1' },
        { 'x-a': 'b\0' },
        { 'x-a': '\u2028' },
        { 'x-a\r\nset-cookie': 'stolen' },
        { 'x a': 'b' },
        { '': 'b' },
        { 'X-Upper': 'b' },
        { 'content-length': '1' },
        { 'transfer-encoding': 'chunked' },
        { connection: 'close' },
        { 'x-long': 'x'.repeat(20_000) },
        { 'x-a': undefined as unknown as string },
      ];
      const { port, errors } = await serving(t, ({ path }) =>
        Promise.resolve(text('content', 200, bad[Number(path.slice(1))])),
      );
      for (const i of bad.keys()) {
        const came = await rawExchange(t, port, request(`/${i}`, ['Connection: close']));
        assert.match(came, /^HTTP\/1.1 500 /, JSON.stringify(bad[i]));
        assert.doesNotMatch(came, /stolen|x-upper|x a|content$|chunked/i);
        assert.ok(errors[i] instanceof TypeError);
      }
    });
  });

  describe('a failing handler', () => {
    it('is answered with 500 that tells nothing, and the process and connection live on', async (t) => {
      const late = () => new Promise((resolve) => setImmediate(resolve));
      const failures: Record<string, Serve> = {
        '/throws': () => {
          throw new Error('secret');
        },
        '/rejects': () => Promise.reject(new Error('secret')),
        '/rejects-late': async () => {
          await late();
          throw new Error('secret');
        },
        // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- what code does that we call
        '/rejects-nothing': () => Promise.reject(undefined),
        '/no-reply': () => Promise.resolve(undefined as never),
        '/no-status': () => Promise.resolve({ ...text('secret'), status: 99 }),
      };
      const { port, errors } = await serving(t, (incoming) => (failures[incoming.path] ?? echo)(incoming));
      for (const path of Object.keys(failures)) {
        const client = await RawClient.connect(t, port);
        const came = await client.send(request(path)).until((all) => all.includes('}'));
        assert.match(came, /^HTTP\/1.1 500 .*application\/problem\+json.*"code":"internal"/s, path);
        assert.doesNotMatch(came, /secret/);
      }
      assert.equal(errors.length, Object.keys(failures).length);
    });

    it('of a stream cuts the connection: never a clean end', async (t) => {
      const failures: Record<string, () => Promise<void>> = {
        throws: () => {
          throw new Error('sync');
        },
        rejects: () => Promise.reject(new Error('at once')),
        later: async () => {
          await new Promise((resolve) => setImmediate(resolve));
          throw new Error('later');
        },
      };
      const { port } = await serving(t, ({ path }) => {
        const [, amount = '', how = '', coding] = path.split('/');
        return Promise.resolve(
          stream(async (sink) => {
            const found = codings.find((candidate) => candidate === coding);
            const target = found === undefined ? sink : compress(found, sink);
            try {
              for (let sent = 0; sent < Number(amount); sent += 1000)
                await target.write(Buffer.alloc(1000, 'x'));
              await failures[how]?.();
              await target.end();
            } catch (error) {
              target.fail(error);
              throw error;
            }
          }),
        );
      });
      for (const how of Object.keys(failures)) {
        for (const amount of [0, 1000, 100_000]) {
          for (const coding of ['', '/gzip', '/br']) {
            const came = await rawExchange(t, port, request(`/${amount}/${how}${coding}`));
            assert.ok(!came.endsWith('0\r\n\r\n'), `${how} after ${amount} ${coding}`);
            assert.doesNotMatch(came, /^HTTP\/1.1 200.*content-length/is);
          }
        }
      }
    });
  });

  describe('a stream', () => {
    it('of nothing, of little and of more than a chunk arrives as written', async (t) => {
      const { port } = await serving(t, ({ path }) =>
        Promise.resolve(
          stream(async (sink) => void (await sink.write(Buffer.alloc(Number(path.slice(1)), 'x')))),
        ),
      );
      for (const length of [0, 1, 15_000, 16_000, 16_384, 100_000]) {
        const response = await fetch(`http://127.0.0.1:${port}/${length}`);
        assert.equal((await response.text()).length, length);
      }
    });

    it('travels at once, chunk by chunk, while its source is slow', async (t) => {
      const next = [deferred<void>(), deferred<void>()];
      const { port } = await serving(t, () =>
        Promise.resolve(
          stream(async (sink) => {
            await sink.write(Buffer.from('first'));
            await next[0]?.promise;
            await sink.write(Buffer.from('second'));
            await next[1]?.promise;
          }),
        ),
      );
      const client = await RawClient.connect(t, port);
      client.send(request('/'));
      await client.until((came) => came.includes('first'));
      next[0]?.resolve();
      await client.until((came) => came.includes('second'));
      assert.ok(!client.text.endsWith('0\r\n\r\n'));
      next[1]?.resolve();
      await client.until((came) => came.endsWith('0\r\n\r\n'));
    });

    for (const how of ['FIN', 'RST'] as const) {
      it(`hears within 250 ms that its client left (${how}), and its writer is told why`, async (t) => {
        const aborted = deferred<number>();
        const failed = deferred<unknown>();
        const { port, errors } = await serving(t, () =>
          Promise.resolve(
            stream(async (sink) => {
              sink.signal.addEventListener('abort', () => aborted.resolve(performance.now()));
              try {
                for (;;) {
                  await sink.write(Buffer.alloc(1000));
                  await new Promise((resolve) => setImmediate(resolve));
                }
              } catch (error) {
                failed.resolve(error);
                throw error;
              }
            }),
          ),
        );
        const client = await RawClient.connect(t, port);
        await client.send(request('/')).until((came) => came.length > 10_000);
        const left = performance.now();
        if (how === 'FIN') client.socket.destroy();
        else client.socket.resetAndDestroy();
        assert.ok((await aborted.promise) - left < 250);
        assert.equal(((await failed.promise) as Error).name, 'ClientGoneError');
        assert.deepEqual(errors, [], 'a client that leaves is no error');
      });
    }

    it('whose client left before it began is run once, into an aborted sink', async (t) => {
      const asked = deferred<void>();
      const gone = deferred<void>();
      const ran = deferred<boolean>();
      const { port } = await serving(t, async ({ signal }) => {
        asked.resolve();
        signal.addEventListener('abort', () => gone.resolve());
        await gone.promise;
        return stream((sink) => {
          ran.resolve(sink.signal.aborted);
          return Promise.resolve();
        });
      });
      const client = await RawClient.connect(t, port);
      client.send(request('/'));
      await asked.promise;
      client.socket.destroy();
      assert.equal(await ran.promise, true);
    });
  });

  describe('requests on one connection', () => {
    it('that are pipelined get their answers in order', async (t) => {
      const { port } = await serving(t, ({ path }) => Promise.resolve(text(`<${path}>`)));
      const client = await RawClient.connect(t, port);
      const paths = Array.from({ length: 50 }, (_, i) => `/${i}`);
      client.send(paths.map((path) => request(path)).join(''));
      const came = await client.until((all) => all.includes('</49>'));
      assert.deepEqual(
        came.match(/<[^>]+>/g),
        paths.map((path) => `<${path}>`),
      );
    });

    it('that are pipelined behind a slow one never get mixed-up answers', async (t) => {
      const { port } = await serving(t, async ({ path }) => {
        await new Promise((resolve) => setImmediate(resolve));
        return text(`<${path}>`);
      });
      const client = await RawClient.connect(t, port);
      client.send(request('/1') + request('/2') + request('/3', ['Connection: close']));
      const answers = (await client.untilClosed()).match(/<[^>]+>/g) ?? [];
      // uWebSockets.js closes the connection when a request comes before the one ahead is answered.
      assert.deepEqual(answers, name === 'uws' ? [] : ['</1>', '</2>', '</3>']);
    });
  });

  describe('what is not a clear request', () => {
    const smuggled = request('/smuggled');
    const cases: Record<string, string> = {
      'two lengths': `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: ${smuggled.length}\r\n\r\n`,
      'two equal lengths': 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n',
      'a list of lengths': 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 0\r\n\r\n',
      'a signed length': 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +0\r\n\r\n',
      'a hexadecimal length': 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x0\r\n\r\n',
      'length and transfer-encoding':
        'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'two transfer-encodings':
        'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n',
      'a transfer-encoding that is not chunked':
        'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
      'an obscure transfer-encoding':
        'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n',
      'two hosts': 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n',
      'no host': 'GET / HTTP/1.1\r\nX: a\r\n\r\n',
      'a GET with a length': `GET / HTTP/1.1\r\nHost: a\r\nContent-Length: ${smuggled.length}\r\n\r\n`,
      'a HEAD with a length': `HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: ${smuggled.length}\r\n\r\n`,
      'a chunked GET': 'GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'a space before the colon': 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\n',
      'a folded header': 'POST / HTTP/1.1\r\nHost: a\r\nX: a\r\n Content-Length: 5\r\n\r\n',
      'a bare LF': 'GET / HTTP/1.1\nHost: a\n\n',
      'a NUL in a header': 'GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n',
      'an absolute target': 'GET http://evil/ HTTP/1.1\r\nHost: a\r\n\r\n',
      'no target': 'GET HTTP/1.1\r\nHost: a\r\n\r\n',
      'another version': 'GET / HTTP/2.0\r\nHost: a\r\n\r\n',
      garbage: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n',
    };
    for (const [what, raw] of Object.entries(cases)) {
      it(`is not answered as one, nor is what comes behind it: ${what}`, async (t) => {
        const seen: string[] = [];
        const { port } = await serving(t, (incoming) => {
          seen.push(incoming.path);
          return Promise.resolve(text('answered'));
        });
        const came = await rawExchange(t, port, raw + smuggled);
        assert.deepEqual(seen, []);
        assert.match(came, /^($|HTTP\/1.1 (400|505) )/);
      });
    }

    it('a chunk whose size is no number ends the connection', async (t) => {
      const seen: string[] = [];
      const { port } = await serving(t, async (incoming) => {
        await incoming.body();
        seen.push(incoming.path);
        return text('answered');
      });
      const head = request('/', ['Transfer-Encoding: chunked'], 'POST');
      const came = await rawExchange(t, port, `${head}zz\r\nab\r\n0\r\n\r\n${smuggled}`);
      assert.deepEqual(seen, []);
      assert.doesNotMatch(came, /answered/);
    });
  });

  describe('a request head', () => {
    it('of 15 KB is read, and of 17 KB is answered with 431', async (t) => {
      const { port } = await serving(t, echo);
      const client = await RawClient.connect(t, port);
      const value = 'x'.repeat(15_000);
      const came = await client.send(request('/', [`X-Long: ${value}`])).until((all) => all.endsWith('}'));
      assert.ok(came.includes(value));
      const refused = await rawExchange(t, port, request('/', [`X-Long: ${'x'.repeat(17_000)}`]));
      assert.match(refused, /^HTTP\/1.1 431 /);
    });
  });

  describe('an engine', () => {
    it('refuses an address that is taken', async (t) => {
      const { port } = await serving(t, echo);
      const { createEngine } = await import('../src/http/engine.ts');
      const second = createEngine(name, {
        serve: echo,
        bodyLimit: 0,
        stallTimeoutMs: 1000,
        onError: () => undefined,
        cacheDirectory: '/nonexistent',
      }).engine;
      await assert.rejects(second.listen('127.0.0.1', port), /in use|taken/i);
      await second.stop(0);
    });

    it('stops: running answers finish and close, idle connections close, new ones are refused', async (t) => {
      const going = deferred<void>();
      const asked = deferred<void>();
      const { port, stop } = await serving(t, async ({ path }) => {
        if (path === '/slow') {
          asked.resolve();
          await going.promise;
        }
        return text(`done ${path}`);
      });
      const idle = await RawClient.connect(t, port);
      await idle.send(request('/idle')).until((came) => came.endsWith('done /idle'));
      const running = await RawClient.connect(t, port);
      running.send(request('/slow'));
      await asked.promise;
      const stopped = stop(10_000);
      await assert.rejects(RawClient.connect(t, port), /ECONNREFUSED/);
      going.resolve();
      assert.match(await running.untilClosed(), /connection: close\r\n.*done \/slow$/is);
      await idle.untilClosed();
      await stopped;
    });

    it('stops: streams go on until the grace time, then they are cut', async (t) => {
      const reason = deferred<unknown>();
      const written = deferred<void>();
      const { port, stop } = await serving(t, () =>
        Promise.resolve(
          stream(async (sink) => {
            await sink.write(Buffer.from('begun'));
            sink.signal.addEventListener('abort', () => reason.resolve(sink.signal.reason));
            written.resolve();
            await reason.promise;
            sink.signal.throwIfAborted();
          }),
        ),
      );
      const client = await RawClient.connect(t, port);
      client.send(request('/'));
      await client.until((came) => came.includes('begun'));
      await written.promise;
      const began = performance.now();
      await stop(300);
      assert.ok(performance.now() - began >= 290);
      assert.equal(((await reason.promise) as Error).name, 'StoppedError');
      assert.ok(!(await client.untilClosed()).endsWith('0\r\n\r\n'));
    });
  });
}
