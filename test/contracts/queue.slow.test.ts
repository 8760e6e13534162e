import assert from 'node:assert/strict';
import { EventEmitter, on, once } from 'node:events';
import type { TestContext } from 'node:test';
import { BullQueue } from '../../src/queue/bullmq.ts';
import { createLocalQueue } from '../../src/queue/local.ts';
import { queueOpener } from '../../src/queue/open.ts';
import type { JobQueue, QueueOptions } from '../../src/queue/queue.ts';
import { testRedis, type TestRedis } from '../support/redis/redis.ts';
import { testCluster } from '../support/redis/topologies.ts';
import { testsWith } from '../support/tests-with.ts';

const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };
type Open = (options: QueueOptions) => JobQueue;

/** Opens queues on a backend that ends with the test; null: skipped. */
const PLACES: [name: string, place: (t: TestContext) => Promise<Open | null>][] = [
  ['local', () => Promise.resolve((options) => createLocalQueue(options))],
  [
    'bullmq',
    async (t) => {
      const redis = await testRedis(t);
      return redis && ((options) => onRedis(redis, options));
    },
  ],
  [
    'bullmq on a Cluster',
    async (t) => {
      const redises = await testCluster(t, 0);
      return redises && ((options) => onRedis(redises, options));
    },
  ],
];

function onRedis({ url }: Pick<TestRedis, 'url'>, options: QueueOptions): JobQueue {
  return new BullQueue({ ...options, url, name: 'exports-test', log: quiet });
}

/** The arguments of `wanted` events, in order. */
async function take(events: EventEmitter, name: string, wanted: number): Promise<unknown[]> {
  const taken: unknown[] = [];
  for await (const [value] of on(events, name) as AsyncIterable<unknown[]>) {
    taken.push(value);
    if (taken.length === wanted) break;
  }
  return taken;
}

for (const [name, place] of PLACES) {
  const it = testsWith(place, name);
  it('every id is worked on, within the concurrency limit, and never twice at the same time', async (open) => {
    const events = new EventEmitter();
    const two = once(events, 'two');
    let most = 0;
    let now = 0;
    const queue = open({
      concurrency: 2,
      work: async (id) => {
        most = Math.max(most, ++now);
        if (now === 2) events.emit('two');
        await two;
        await new Promise(setImmediate);
        now--;
        events.emit('done', id);
        return null;
      },
    });
    const ids = Array.from({ length: 20 }, (_, n) => `job${n}`);
    const done = take(events, 'done', ids.length);
    await Promise.all(ids.flatMap((id) => [queue.add(id), queue.add(id)]));
    assert.deepEqual(new Set(await done), new Set(ids));
    assert.equal(most, 2);
    await queue.close();
  });

  it('an id is offered again when its work asks for it, and after a delay', async (open) => {
    const events = new EventEmitter();
    const offered: string[] = [];
    const queue = open({
      concurrency: 1,
      work: (id) => {
        offered.push(id);
        events.emit('done', id);
        return Promise.resolve(offered.filter((one) => one === id).length < 3 ? 1 : null);
      },
    });
    const done = take(events, 'done', 6);
    await queue.add('late', 50);
    await queue.add('again');
    await done;
    assert.deepEqual(offered.toSorted(), ['again', 'again', 'again', 'late', 'late', 'late']);
    await queue.close();
  });

  it('a stop waits for running work, and starts none', async (open) => {
    const events = new EventEmitter();
    const begun: string[] = [];
    let finish = (): void => undefined;
    const queue = open({
      concurrency: 1,
      work: (id) =>
        new Promise((resolve) => {
          begun.push(id);
          finish = () => resolve(null);
          events.emit('begun');
        }),
    });
    const first = once(events, 'begun');
    await queue.add('one');
    await first;
    await queue.add('two');
    let isClosed = false;
    const closing = queue.close().then(() => (isClosed = true));
    await new Promise(setImmediate);
    assert.equal(isClosed, false);
    finish();
    await closing;
    assert.deepEqual(begun, ['one']);
  });
}

const onRedisServer = testsWith(testRedis, 'bullmq');

onRedisServer('processes share a queue only when they are on the same store', async (redis) => {
  const settings = { REDIS_URL: redis.url, EXPORT_CONCURRENCY: 1 };
  const events = new EventEmitter();
  const ids = ['a', 'a', 'b'];
  const queues: JobQueue[] = [];
  let isAway = true;
  for (const [process, id] of ids.entries()) {
    const storeId = () => (isAway ? Promise.reject(new Error('away')) : Promise.resolve(id));
    const open = await queueOpener(settings, quiet, storeId);
    const work = (job: string) => {
      events.emit('done', `${job} in ${ids[process]}`);
      return Promise.resolve(null);
    };
    queues.push(open({ work }));
  }
  await assert.rejects(queues[0]?.add('early') ?? Promise.resolve(), /away/);
  isAway = false;
  const done = take(events, 'done', 6);
  for (const queue of queues) for (const job of ['x', 'y']) await queue.add(`${job}${queues.indexOf(queue)}`);
  assert.deepEqual((await done).toSorted(), [
    'x0 in a',
    'x1 in a',
    'x2 in b',
    'y0 in a',
    'y1 in a',
    'y2 in b',
  ]);
  for (const queue of queues) await queue.close();
  await assert.rejects(queues[0]?.add('late') ?? Promise.resolve(), /closed/);
});

onRedisServer(
  'Redis is killed and comes back empty: an add fails meanwhile, and an id that is added later is worked on',
  async (redis) => {
    const events = new EventEmitter();
    const queue = onRedis(redis, {
      concurrency: 1,
      work: (id) => {
        events.emit('done', id);
        return Promise.resolve(null);
      },
    });
    const first = once(events, 'done');
    await queue.add('before');
    assert.deepEqual(await first, ['before']);
    await redis.kill();
    const done = on(events, 'done');
    await assert.rejects(queue.add('meanwhile')); // it may arrive late
    await redis.start();
    for (let isAdded = false; !isAdded;)
      isAdded = await queue.add('after').then(
        () => true,
        () => false,
      );
    for await (const [id] of done as AsyncIterable<unknown[]>) if (id === 'after') break;
    await redis.kill();
    await queue.close(); // without Redis, too
  },
);
