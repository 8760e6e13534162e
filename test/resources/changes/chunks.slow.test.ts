import assert from 'node:assert/strict';
import { test } from 'node:test';
import { constants, createGunzip } from 'node:zlib';
import { BSON } from '../../../src/store/values/bson.ts';
import { RawClient, request } from '../../support/engine/raw.ts';
import { serverOn } from '../../support/process/server.ts';

/** The contents of the chunks of an answer that came with their ends. Bytes are latin1 text. */
function wholeChunks(answer: string): string {
  let content = '';
  for (let at = answer.indexOf('\r\n\r\n') + 4; at > 3;) {
    const [head = '', digits = ''] = /^([0-9a-f]+)\r\n/i.exec(answer.slice(at, at + 16)) ?? [];
    const from = at + head.length;
    const end = at + head.length + parseInt(digits, 16);
    if (head === '' || answer.length < end + 2) break;
    assert.equal(answer.slice(end, end + 2), '\r\n');
    content += answer.slice(from, end);
    at = end + 2;
  }
  return content;
}

/** What of a content can be decoded so far. */
async function decodedOf(content: string, coding: string): Promise<string> {
  const bytes = Buffer.from(content, 'latin1');
  if (coding === 'identity') return bytes.toString();
  const decoder = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH });
  decoder.end(bytes);
  const parts: Buffer[] = [];
  for await (const part of decoder) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

const READERS = ['identity', 'gzip'].flatMap((coding) =>
  ['application/x-ndjson', 'text/event-stream'].flatMap((accept) =>
    ['/items/changes?follow=true', '/changes?resources=items&follow=true'].map((path) => ({
      coding,
      accept,
      path,
    })),
  ),
);

for (const engine of ['uws', 'node'] as const)
  test(`${engine} sends each line of a feed in whole chunks, before anything else comes`, async (t) => {
    const settings = { HTTP_ENGINE: engine, MONGODB_URI: '', RATE_LIMIT: 'off', STREAM_LIMIT: 'off' };
    const server = await serverOn(t, settings, { heartbeatMs: 3_600_000 });
    const readers = await Promise.all(
      READERS.map(async ({ coding, accept, path }) => {
        const client = await RawClient.connect(t, Number(new URL(server.url).port));
        client.send(request(path, [`Accept: ${accept}`, `Accept-Encoding: ${coding}`]));
        return async (...parts: string[]) => {
          for (;;) {
            const seen = client.text.length;
            const content = await decodedOf(wholeChunks(client.text), coding);
            if (parts.every((part) => content.includes(part))) return { accept, content };
            await client.until((text) => text.length > seen);
          }
        };
      }),
    );
    await Promise.all(readers.map((until) => until('"upToDate":true')));
    for (const price of [1, 2]) {
      const row = BSON.serialize({ _id: 'a', category: 'x', price });
      await server.store.items.insert([row], 'replace');
      const checkpoint = `"upToDate":true,"rows":${price},`;
      for (const { accept, content } of await Promise.all(
        readers.map((until) => until(`"price":${price}`, checkpoint)),
      )) {
        const lines = content.split('\n').slice(0, -1);
        const isEvents = accept === 'text/event-stream';
        const json = isEvents ? lines.flatMap((line) => /^data: (.*)/.exec(line)?.[1] ?? []) : lines;
        assert.ok(json.every((line) => typeof JSON.parse(line) === 'object'));
      }
    }
  });
