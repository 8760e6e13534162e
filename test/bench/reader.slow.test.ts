import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { readStream, verifyStream } from '../../bench/reader.ts';
import { answering, BODY, CHUNKED, COUNTED, OK } from '../support/load/answering.ts';

test('the bytes and rows of a stream are counted after decoding', async (t) => {
  const wanted = { rows: 2, bytes: BODY.length, md5: createHash('md5').update(BODY).digest('hex') };
  assert.deepEqual(await verifyStream(await answering(t, CHUNKED), 'identity'), wanted);
  const packed = gzipSync(BODY);
  const head = `${OK}Content-Encoding: gzip\r\nContent-Length: ${packed.length}\r\n\r\n`;
  const url = await answering(t, Buffer.concat([Buffer.from(head), packed]));
  assert.deepEqual(await verifyStream(url, 'gzip'), wanted);
  assert.equal((await readStream(url, 'gzip')).bytes, packed.length);
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
