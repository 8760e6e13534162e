import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Serve } from '../../src/engine/edge.ts';
import { compress, codings } from '../../src/pipeline/compress.ts';
import { rawExchange, RawClient, request } from '../support/engine/raw.ts';
import { echo, stream, text, type Serving } from '../support/engine/engines.ts';

/** Answers, and the results of faulty ones. */
export function answerContract(serving: Serving): void {
  describe('an answer', () => {
    it('has status, headers, Date and its exact length, and keeps the connection open', async (t) => {
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

    it('without a body has length 0 with 200, and no length with 204 and 304', async (t) => {
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

    it('to HEAD has headers only, whatever the reply contains', async (t) => {
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
      assert.equal(ran, 1, 'a stream runs even without a reader, because it holds resources');
    });

    it('with a forbidden header becomes a 500, and none of it reaches the wire', async (t) => {
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
    it('gets a 500 without details, and the process and connection live on', async (t) => {
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

    it('of a stream cuts the connection and never ends it cleanly', async (t) => {
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
}
