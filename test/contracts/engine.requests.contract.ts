import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it, type TestContext } from 'node:test';
import type { Serve } from '../../src/engine/edge.ts';
import { deferred, rawExchange, RawClient, request } from '../support/engine/raw.ts';
import type { Sink } from '../../src/pipeline/sink.ts';
import {
  echo,
  stream,
  text,
  type EngineName,
  type received,
  type Serving,
} from '../support/engine/engines.ts';

/** How requests and their bodies reach the application. */
export function requestContract(serving: Serving): void {
  describe('requests', () => {
    it('have the method, path, query and headers that were sent', async (t) => {
      const { port } = await serving(t, echo);
      const client = await RawClient.connect(t, port);
      const fields = 'Host: localhost\r\nX-One: 1\r\nx-one:  2 \r\n__proto__: evil\r\n\r\n';
      client.send(`GET /a%2Fb/%zz//c?x=%zz&x=1&=&? HTTP/1.1\r\n${fields}`);
      const answer = await client.until((came) => came.endsWith('}'));
      const seen = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))) as Awaited<
        ReturnType<typeof received>
      >;
      assert.equal(seen.method, 'GET');
      assert.equal(seen.path, '/a%2Fb/%zz//c');
      assert.equal(seen.query, 'x=%zz&x=1&=&?');
      assert.equal(seen.headers['x-one'], '1, 2');
      assert.equal(Object.entries(seen.headers).find(([key]) => key === '__proto__')?.[1], 'evil');
      assert.equal(seen.address, '127.0.0.1');
      assert.equal(seen.body, '');
    });

    it('with a body that no handler reads are answered after the body has arrived', async (t) => {
      const { port } = await serving(t, () => Promise.resolve(text('not wanted', 405)));
      const client = await RawClient.connect(t, port);
      client.send(request('/x', ['Content-Length: 5'], 'POST') + '12345' + request('/y'));
      const came = await client.until((all) => all.split('not wanted').length === 3);
      assert.equal(came.match(/HTTP\/1.1 405/g)?.length, 2);
    });
  });

  describe('a body', () => {
    // RFC 9110, 10.1.1. Java writes it with a capital letter.
    for (const expect of ['100-continue', '100-Continue', '100-CONTINUE'])
      it(`that waits for an answer to Expect: ${expect} gets one, and then its own`, async (t) => {
        const { port } = await serving(t, async (incoming) =>
          text(Buffer.from(await incoming.body()).toString(), 201),
        );
        const client = await RawClient.connect(t, port);
        for (const body of ['first', 'other', '']) {
          client.text = '';
          const head = request('/x', [`Content-Length: ${body.length}`, `Expect: ${expect}`], 'POST');
          client.send(head);
          if (body !== '') {
            assert.equal(
              await client.until((came) => came.endsWith('\r\n\r\n')),
              'HTTP/1.1 100 Continue\r\n\r\n',
            );
            client.send(body);
          }
          const came = await client.until(
            (all) => /HTTP\/1\.1 201 Created[^]*\r\n\r\n/.test(all) && all.endsWith(body),
          );
          assert.match(came, /\r\ncontent-length: \d+\r\n/i);
        }
      });

    const answering: Serve = async (incoming) => {
      try {
        return text(`took ${(await incoming.body()).length}`);
      } catch (error) {
        return text((error as { code: string }).code, 413);
      }
    };

    it('of exactly the limit is accepted, and of one byte more is refused, with and without a length', async (t) => {
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
          // Read to its end, so that the connection stays open.
          client.text = '';
          client.send(request('/again', ['Content-Length: 2'], 'POST') + 'ok');
          assert.match(await client.until((came) => came.includes('took 2')), /200/);
        }
      }
    });

    it('without end is refused, and its connection is closed, without being kept in memory', async (t) => {
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

    it('rejects when the client aborts it', async (t) => {
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
}

/** Bodies without a meaning, and requests that are not read. Neither lets anything behind it run. */
export function closingContract(serving: Serving): void {
  const big = 'x'.repeat(300_000);
  /** A server that notes which paths ran, with answers of every kind. */
  const noting = async (t: TestContext) => {
    const ran: string[] = [];
    const served = await serving(t, async (incoming) => {
      const { path } = incoming;
      ran.push(path);
      assert.equal((await incoming.body()).length, 0);
      if (path === '/stream')
        return stream(async (sink) => {
          await sink.write(Buffer.from('piece'));
        });
      return text(path === '/big' ? big : `<${path}>`);
    });
    return { ...served, ran };
  };

  describe('a GET with a body', () => {
    const bodies: [what: string, headers: string[], body: string][] = [
      ['of a length', ['Content-Length: 2'], '{}'],
      ['in chunks', ['Transfer-Encoding: chunked'], '2\r\n{}\r\n0\r\n\r\n'],
      ['in no chunk', ['Transfer-Encoding: chunked'], '0\r\n\r\n'],
    ];
    for (const [what, headers, body] of bodies)
      for (const [path, end] of [
        ['/small', '</small>'],
        ['/big', 'xxx'],
        ['/stream', '0\r\n\r\n'],
      ] as const)
        it(`${what} is answered, and closes its connection: ${path}`, async (t) => {
          const { port, ran, stop } = await noting(t);
          const client = await RawClient.connect(t, port);
          client.send(request(path, headers));
          await new Promise((resolve) => setImmediate(resolve));
          const came = await client.send(body).untilClosed();
          assert.match(came, /^HTTP\/1\.1 200 OK\r\n[^]*connection: close\r\n/i);
          assert.ok(came.includes(end) && came.length > (path === '/big' ? big.length : 0), came.slice(-100));
          assert.deepEqual(ran, [path]);
          await stop(15_000);
        });

    it('lets nothing behind it run, wherever its body is cut into packets', async (t) => {
      const { port, ran } = await noting(t);
      const whole = request('/first', ['Content-Length: 2']) + '{}' + request('/behind', [], 'POST');
      for (let at = whole.indexOf('{}') - 2; at <= whole.indexOf('{}') + 4; at++) {
        const client = await RawClient.connect(t, port);
        client.send(whole.slice(0, at));
        await new Promise((resolve) => setImmediate(resolve));
        await client.send(whole.slice(at)).untilClosed();
      }
      assert.deepEqual([...new Set(ran)], ['/first']);
    });
  });

  describe('a request that is not read', () => {
    const faults: [lines: string[], reason: RegExp][] = [
      [['Content-Length: 2', 'Content-Length: 3'], /given twice/],
      [['Transfer-Encoding: gzip, chunked'], /can only be chunked/],
      [['Content-Length: x'], /one number/],
    ];
    for (const [lines, reason] of faults)
      it(`is 400 with its reason, and what is behind it never runs: ${lines.join(', ')}`, async (t) => {
        const { port, ran } = await noting(t);
        const came = await rawExchange(t, port, request('/x', lines, 'POST'));
        // A fault that the library finds itself has its own words.
        assert.match(came, /^HTTP\/1\.1 400 Bad Request\r\n[^]*connection: close\r\n/i);
        if (!came.includes('uWebSockets') && came.includes('text/plain')) assert.match(came, reason);
        await rawExchange(t, port, request('/x', lines, 'POST') + 'abc' + request('/behind', [], 'POST'));
        assert.deepEqual(ran, []);
      });
  });
}

/** Requests that are pipelined or too large. Malformed and ambiguous ones are in the corpus. */
export function hostileContract(serving: Serving, name: EngineName): void {
  describe('requests on one connection', () => {
    it('that are pipelined behind a slow one are never answered out of order', async (t) => {
      const { port } = await serving(t, async ({ path }) => {
        await new Promise((resolve) => setImmediate(resolve));
        return text(`<${path}>`);
      });
      const client = await RawClient.connect(t, port);
      client.send(request('/1') + request('/2') + request('/3', ['Connection: close']));
      const answers = (await client.untilClosed()).match(/<[^>]+>/g) ?? [];
      // uWebSockets.js closes the connection when a request arrives before the previous one is answered.
      assert.deepEqual(answers, name === 'uws' ? [] : ['</1>', '</2>', '</3>']);
    });
  });

  describe('a burst of requests on one connection', () => {
    it('lets other connections have their turns', async (t) => {
      let inTurn = 0;
      let most = 0;
      const { port } = await serving(t, ({ path }) => {
        if (inTurn === 0) setImmediate(() => (inTurn = 0));
        inTurn++;
        most = Math.max(most, inTurn);
        for (const end = performance.now() + 1; performance.now() < end;); // as long as a page takes
        return Promise.resolve(text(`<${path}>`));
      });
      const client = await RawClient.connect(t, port);
      const paths = Array.from({ length: 300 }, (_, i) => `/${i}`);
      client.send(paths.map((path) => request(path)).join('') + request('/last', ['Connection: close']));
      const answers = (await client.untilClosed()).match(/<\/\d+>/g) ?? [];
      // uWebSockets.js closes the connection when a request arrives before the previous one is answered.
      assert.equal(answers.length, name === 'uws' ? 0 : paths.length);
      assert.ok(most <= 32, `${most} requests began in one turn of the event loop`);
    });
  });

  describe('a burst of ten thousand requests on one connection', () => {
    it('keeps a request of another one waiting for a few of them only', async (t) => {
      const begun = deferred();
      let before = 0;
      let served = 0;
      const { port } = await serving(t, async ({ path }) => {
        if (path === '/other') return text(`${served - before}`);
        served++;
        if (served === 10) {
          before = served;
          begun.resolve();
        }
        await new Promise((resolve) => setImmediate(resolve)); // as a read of the store
        return text('burst');
      });
      const client = await RawClient.connect(t, port);
      client.send(request('/burst').repeat(10_000));
      if (name === 'uws') {
        await client.untilClosed();
        return;
      }
      await begun.promise;
      const waited = Number(await (await fetch(`http://127.0.0.1:${port}/other`)).text());
      assert.ok(waited <= 1_000, `${waited} requests of the burst came first`);
    });
  });

  describe('requests without end behind one that is not answered', () => {
    it('are not read into memory, and are answered in order afterwards', async (t) => {
      const first = deferred();
      const { port } = await serving(t, async ({ path }) => {
        if (path === '/0') await first.promise;
        return text(`<${path}>`);
      });
      const client = await RawClient.connect(t, port);
      const paths = Array.from({ length: 8000 }, (_, i) => `/${i}`);
      const long = [`X-Long: ${'x'.repeat(2000)}`];
      client.send(
        paths.map((path) => request(path, long)).join('') + request('/last', ['Connection: close']),
      );
      if (name === 'uws') {
        await client.untilClosed();
        return;
      }
      // as many turns of the event loop as it took to read all
      for (let n = 0; n < 100; n++) await (await fetch(`http://127.0.0.1:${port}/other`)).text();
      assert.ok(client.socket.writableLength > 0, 'all of 16 MB were read');
      first.resolve();
      const answers = (await client.untilClosed()).match(/<\/\d+>/g);
      assert.deepEqual(
        answers,
        paths.map((path) => `<${path}>`),
      );
    });
  });

  describe('what is no request, behind one that is being answered', () => {
    it('cuts the answer, and is never answered inside it', async (t) => {
      const written = deferred();
      const { port } = await serving(t, () => {
        const run = async (sink: Sink) => {
          await sink.write(Buffer.from('begin'));
          written.resolve();
          await once(sink.signal, 'abort');
          sink.signal.throwIfAborted();
        };
        return Promise.resolve({ status: 200, headers: {}, body: { kind: 'stream', length: 500, run } });
      });
      const client = await RawClient.connect(t, port);
      await client.send(request('/')).until((came) => came.endsWith('begin'));
      await written.promise;
      const came = await client.send('\0\0 no request\r\n\r\n').untilClosed();
      // uWebSockets.js writes its own 505 in there: see docs/operations.md.
      if (name === 'uws') return;
      assert.equal(came.split('HTTP/1.1').length - 1, 1, came);
      assert.match(came, /begin$/);
    });
  });

  describe('a request head', () => {
    it('of 15 KB is accepted, and of 17 KB is answered with 431', async (t) => {
      const { port } = await serving(t, echo);
      const client = await RawClient.connect(t, port);
      const value = 'x'.repeat(15_000);
      const came = await client.send(request('/', [`X-Long: ${value}`])).until((all) => all.endsWith('}'));
      assert.ok(came.includes(value));
      const refused = await rawExchange(t, port, request('/', [`X-Long: ${'x'.repeat(17_000)}`]));
      assert.match(refused, /^HTTP\/1.1 431 /);
    });
  });
}
