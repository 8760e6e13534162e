import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { readStream, verifyStream } from '../../bench/reader.ts';
import { answering } from '../support/load/answering.ts';

const BODY = '{"id":"a"}\n{"id":"b"}\n';
const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\na\r\n{"id":"a"}\r\nC\r\n\n{"id":"b"}\n\r\n0\r\n\r\n`;
const COUNTED = `${OK}Content-Length: ${BODY.length}\r\n\r\n${BODY}`;

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
