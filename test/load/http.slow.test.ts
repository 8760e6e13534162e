import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Finder } from '../../src/load/finder.ts';
import { AnswerReader } from '../../src/load/http/answer-reader.ts';
import { Connection } from '../../src/load/http/connection.ts';
import { answerOver, exchange } from '../../src/load/http/get.ts';
import { Requests } from '../../src/load/http/requests.ts';
import { StreamContent } from '../../src/load/http/stream-content.ts';
import { Mismatch } from '../../src/pull/retry.ts';
import { answering, BODY, CHUNKED, COUNTED, OK } from '../support/load/answering.ts';

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

/** Reads a whole stream, decoded. */
async function contentOf(url: string): Promise<string> {
  const to = new URL(url);
  const nothing = () => undefined;
  const request = new Requests(to, null).get('/', { accept: '*/*', coding: 'gzip' });
  const content = new StreamContent(to, request, { bytes: nothing, firstByte: nothing, gap: nothing });
  const head = await content.head();
  let text = '';
  for await (const piece of content.decoded(head.header('content-encoding'))) text += piece.toString();
  return text;
}

test('a stream is decoded, and a fault of its framing or its coding is that of the server', async (t) => {
  const packed = gzipSync(BODY);
  const head = `${OK}Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n`;
  const sent = (body: Buffer, after: string) =>
    Buffer.concat([Buffer.from(`${head}${body.length.toString(16)}\r\n`), body, Buffer.from(after)]);
  assert.equal(await contentOf(await answering(t, sent(packed, '\r\n0\r\n\r\n'))), BODY);
  await assert.rejects(contentOf(await answering(t, sent(packed, '\r\nzz\r\n'))), (error: unknown) => {
    assert.ok(error instanceof Mismatch);
    return error.message.includes('not the size of a chunk');
  });
  const damaged = Buffer.from(packed);
  damaged.fill(0xff, 10, 20);
  await assert.rejects(
    contentOf(await answering(t, sent(damaged, '\r\n0\r\n\r\n'))),
    /cannot be decompressed/,
  );
});

test('a connection is free again after an answer that was given up', async (t) => {
  const url = new URL(await answering(t, COUNTED));
  const connection = new Connection(url);
  t.after(() => connection.close());
  const request = new Requests(url, null).get('/', { accept: '*/*', coding: 'identity' });
  const refuse = () => {
    throw new Error('not wanted');
  };
  await assert.rejects(exchange(connection, request, { onBody: refuse }), /not wanted/);
  assert.equal((await answerOver(connection, request)).body.toString(), BODY);
});
