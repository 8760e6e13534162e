import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { startProxy } from '../support/faults/proxies.ts';
import { RawClient } from '../support/engine/raw.ts';
import { serverOn } from '../support/process/server.ts';

/** A proxy closes what is silent for so long, and a feed to which nothing happens sends a checkpoint so often. */
const SILENCE_MS = 4_000;
const HEARTBEAT_MS = 500;
/** How many checkpoints a feed sends while it is idle for longer than the proxies' limit. */
const CHECKPOINTS = 1 + Math.ceil((1.3 * SILENCE_MS) / HEARTBEAT_MS);

const FEEDS = [
  ['/items/stream?follow=true', 'application/x-ndjson'],
  ['/items/changes', 'text/event-stream'],
] as const;

/** The sample, with limits that a test reaches. nginx would also keep what it has, if the server did not forbid it. */
function impatient(sample: string): string {
  return sample
    .replace('proxy_buffering off', 'proxy_buffering on')
    .replace('proxy_read_timeout 1h', `proxy_read_timeout ${SILENCE_MS}ms`)
    .replace('proxy_send_timeout 1h', `proxy_send_timeout ${SILENCE_MS}ms`)
    .replace('timeout server 1h', `timeout server ${SILENCE_MS}ms`)
    .replace('timeout client 1h', `timeout client ${SILENCE_MS}ms`);
}

/** Lines in chunks as they are on the wire: the brace that begins a line may be a chunk of its own. */
function checkpointsIn(text: string): number {
  return text.split('"checkpoint":').length - 1;
}

describe('feeds through proxies', { concurrency: true }, () => {
  for (const name of ['nginx', 'haproxy'] as const)
    test(`${name}: a feed outlives the proxy's limit of silence, and a change passes at once`, async (t) => {
      const server = await serverOn(t, { MONGODB_URI: '' }, { heartbeatMs: HEARTBEAT_MS });
      const own = Number(new URL(server.url).port);
      const proxy = await startProxy(t, name, [own], impatient);
      if (!proxy) return;
      const follow = async (port: number, [path, accept]: (typeof FEEDS)[number]) =>
        (await RawClient.connect(t, port)).send(
          `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAccept: ${accept}\r\n\r\n`,
        );
      const through = await Promise.all(FEEDS.map((feed) => follow(proxy.port, feed)));
      const direct = await follow(own, FEEDS[0]);

      for (const feed of through) {
        const came = await feed.until((text) => checkpointsIn(text) >= CHECKPOINTS);
        assert.match(came, /^HTTP\/1\.1 200 /);
        assert.match(came, /^incremental: \?1\r$/im);
        // nginx obeys this header and keeps it for itself.
        assert.equal(/^x-accel-buffering: no\r$/im.test(came), name !== 'nginx');
      }

      await server.insert([{ _id: 'changed', category: 'x', price: 1 }]);
      const hasIt = (text: string) => text.includes('"id":"changed"');
      // A second after a change comes a checkpoint, and later others. By then no proxy may still have the change.
      await direct.until((text) => hasIt(text) && checkpointsIn(text.slice(text.indexOf('"changed"'))) > 2);
      await nextTurn(); // which reads what is there on the other connections
      for (const { text, closed } of through) {
        assert.equal(closed, false);
        assert.ok(hasIt(text), 'the proxy has passed the change on');
      }
      // The server waits for its feeds' readers.
      for (const { socket } of [...through, direct]) socket.destroy();
    });
});
