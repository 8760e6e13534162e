import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Finder } from '../src/load/finder.ts';
import { AnswerReader } from '../src/load/http/answer-reader.ts';
import { readStream, verifyStream } from '../bench/reader.ts';

const BODY = '{"id":"a"}\n{"id":"b"}\n';
const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\na\r\n{"id":"a"}\r\nC\r\n\n{"id":"b"}\n\r\n0\r\n\r\n`;
const COUNTED = `${OK}Content-Length: ${BODY.length}\r\n\r\n${BODY}`;

/** A server that answers with exactly these bytes and closes the connection. */
async function answering(t: TestContext, bytes: string | Buffer): Promise<string> {
  const server = createServer((socket) => socket.once('data', () => socket.end(bytes))).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  t.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** An answer as it is read: its status and body, and whether it has ended. */
function reading() {
  const came = { text: '', ended: false, status: 0 };
  const reader = new AnswerReader({
    onHead: ({ status }) => (came.status = status),
    onBody: (piece) => (came.text += piece.toString()),
    onEnd: () => (came.ended = true),
  });
  return { came, reader };
}

test('a body decodes to the same bytes however its chunks are split', () => {
  for (const answer of [CHUNKED, COUNTED, `HTTP/1.1 100 Continue\r\n\r\n${COUNTED}`]) {
    const bytes = Buffer.from(answer);
    for (let size = 1; size <= bytes.length; size++) {
      const { came, reader } = reading();
      const reused = Buffer.alloc(size); // as a socket's buffer is
      for (let at = 0; at < bytes.length; at += size) {
        assert.equal(came.ended, false, `ended before byte ${at}`);
        reader.push(reused.subarray(0, bytes.copy(reused, 0, at)));
      }
      assert.deepEqual(came, { text: BODY, ended: true, status: 200 });
    }
  }
});

test('a body without a length ends with its connection, and other bodies do not', () => {
  const { came, reader } = reading();
  reader.push(Buffer.from(`${OK}\r\n${BODY}`));
  assert.equal(came.ended, false);
  assert.equal(reader.close(), true);
  assert.deepEqual(came, { text: BODY, ended: true, status: 200 });
  const cut = reading();
  cut.reader.push(Buffer.from(COUNTED.slice(0, -1)));
  assert.equal(cut.reader.close(), false);
});

test('invalid framing is an error', () => {
  const push = (text: string) => () => reading().reader.push(Buffer.from(text));
  const head = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
  assert.throws(push(`${head}zz\r\n`), /not the size/);
  assert.throws(push(`${head}1\r\nab\r\n`), /followed by/);
  assert.throws(push('hello\r\n\r\n'), /an answer begins with "hello"/);
  assert.throws(push(`${OK}Content-Length: -1\r\n\r\n`), /the length of an answer/);
});

test('the bytes and rows of a stream are counted after decoding', async (t) => {
  const wanted = { rows: 2, bytes: BODY.length, md5: createHash('md5').update(BODY).digest('hex') };
  assert.deepEqual(await verifyStream(await answering(t, CHUNKED), 'identity'), wanted);
  const packed = gzipSync(BODY);
  const head = `${OK}Content-Encoding: gzip\r\nContent-Length: ${packed.length}\r\n\r\n`;
  const url = await answering(t, Buffer.concat([Buffer.from(head), packed]));
  assert.deepEqual(await verifyStream(url, 'gzip'), wanted);
  assert.equal((await readStream(url, 'gzip')).bytes, packed.length);
});

test('rows with nested documents count once, however they are split', async (t) => {
  const text = '{"id":"a","of":{"x":{}},"all":[{},{"y":1}]}\n{"id":"b"}\n';
  const head = `${OK}Content-Length: ${text.length}\r\n\r\n`;
  assert.equal((await verifyStream(await answering(t, head + text), 'identity')).rows, 2);
});

test('a text is found in the piece in which it ends, however it is split', () => {
  const bytes = Buffer.from('aab"mark-1"aab"mark-12"');
  const end = bytes.indexOf('12"') + 2;
  for (let size = 1; size <= bytes.length; size++) {
    const finder = new Finder('"mark-12"');
    const found: number[] = [];
    for (let at = 0; at < bytes.length; at += size)
      if (finder.isIn(bytes.subarray(at, at + size))) found.push(at);
    assert.deepEqual(found, [end - (end % size)], `pieces of ${size} bytes`);
  }
});

test('a cut, another status and another coding are refused', async (t) => {
  await assert.rejects(
    readStream(await answering(t, CHUNKED.slice(0, -2)), 'identity'),
    /cut after 22 bytes/,
  );
  await assert.rejects(
    readStream(await answering(t, COUNTED.slice(0, -1)), 'identity'),
    /cut after 21 bytes/,
  );
  await assert.rejects(
    readStream(await answering(t, CHUNKED.replace('200', '503')), 'identity'),
    /answered 503/,
  );
  const empty = 'HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n';
  await assert.rejects(readStream(await answering(t, empty), 'identity'), /answered 500/);
  await assert.rejects(readStream(await answering(t, CHUNKED), 'br'), /asked for br and came as identity/);
  await assert.rejects(verifyStream(await answering(t, COUNTED), 'gzip'), /asked for gzip/);
});
