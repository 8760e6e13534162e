import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { test } from 'node:test';
import { Long, Timestamp, type Document } from '../../../../src/store/values/bson.ts';
import type { MongoConnection } from '../../../../src/store/mongo/connection.ts';
import { DatabaseStream } from '../../../../src/store/mongo/changes/stream.ts';

/** A server that has written up to a time, in ticks, and nothing into the collection that is followed. */
class Server extends EventEmitter {
  tick = 1;
  /** How long each getMore said that it waits, and when it came. */
  readonly asked: { readonly waitMs: number; readonly at: number }[] = [];
  readonly #waiting: (() => void)[] = [];

  readonly connection = {
    run: () => Promise.resolve({ operationTime: new Timestamp({ t: 1, i: 0 }) }),
    onCursor: (command: Document) => this.#answer(command),
  } as unknown as MongoConnection;

  /** Answers the getMore under way: the server has written up to this time. */
  answer(tick: number): void {
    this.tick = tick;
    this.#waiting.shift()?.();
  }

  /** Resolves when so many getMores have come. */
  async has(count: number): Promise<void> {
    while (this.asked.length < count) await once(this, 'asked');
  }

  async #answer({ aggregate, maxTimeMS }: Document): Promise<Document> {
    if (aggregate !== undefined) return this.#reply('firstBatch');
    this.asked.push({ waitMs: maxTimeMS as number, at: performance.now() });
    const answered = new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.emit('asked');
    await answered;
    return this.#reply('nextBatch');
  }

  #reply(batch: string): Document {
    const _data = `82${this.tick.toString(16).toUpperCase().padStart(8, '0')}000000002B0429296E04`;
    return { cursor: { [batch]: [], id: new Long(1), postBatchResumeToken: { _data } } };
  }
}

/** The least that the stream rests, in milliseconds, but for the one by which a timer may be early. */
const REST_MS = 19;

test('the stream rests while the server writes, and waits for an event when it does not', async () => {
  const server = new Server();
  const stream = new DatabaseStream(server.connection);
  stream.join('orders');
  server.tick = 2;
  await server.has(1);
  const ticks = [3, 4, 4, 5];
  for (const [n, tick] of ticks.entries()) {
    server.answer(tick);
    await server.has(n + 2);
  }
  const closed = stream.close();
  server.answer(5);
  await closed;
  assert.deepEqual(
    server.asked.map(({ waitMs }) => waitMs),
    [1, 1, 1, 500, 1],
    'it waits for long only behind a reply that nothing was written before',
  );
  const gaps = server.asked.map(({ at }, n) => at - (server.asked[n - 1]?.at ?? at));
  for (const n of [1, 2, 4])
    assert.ok((gaps[n] ?? 0) >= REST_MS, `it came ${gaps[n]} ms after the one before`);
});
