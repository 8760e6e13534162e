import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { BSON, Double, Int32, type Document } from '../../../src/store/values/bson.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { jsonOf, problemOf } from '../../support/answers.ts';
import { Copy, type Answer } from '../../support/resources/copy.ts';
import { readEvents } from '../../support/resources/events.ts';
import { NEVER } from '../../support/store/reading.ts';
import { resourceServer, resourcesFile } from '../../support/resources/resources.ts';
import { testServer } from '../../support/process/server.ts';
import type { EngineName, StoreName, TestServer } from '../../support/process/server.ts';
import { forgedToken } from '../../support/resources/tokens.ts';
import { onCombinations, onStores } from '../../support/process/each-server.ts';

async function put({ store }: TestServer, ...documents: Document[]): Promise<void> {
  const rows = documents.map((document) => BSON.serialize(document));
  const { refused } = await store.items.insert(rows, 'replace');
  assert.deepEqual(refused, []);
}

async function remove({ store }: TestServer, ...ids: unknown[]): Promise<void> {
  await store.items.remove(ids.map((_id) => makeBookmark({ _id })));
}

function item(_id: unknown, category: string, more: Document = {}): Document {
  return { _id, category, price: 1, ...more };
}

async function ask(server: TestServer, path: string): Promise<Answer & { cursor: string }> {
  const copy = new Copy();
  const answer = await copy.read(server.url + path);
  return { ...answer, cursor: copy.cursor ?? '' };
}

function dataOf({ lines }: Answer): string[] {
  return lines.filter((line) => !/^\{"(checkpoint|end)":/.test(line));
}

async function refusalOf(server: TestServer, path: string, headers: Record<string, string> = {}) {
  const response = await server.get(path, headers);
  return { ...(await problemOf(response)), location: response.headers.get('location') };
}

async function opened<S extends StoreName>(t: TestContext, store: S, engine: EngineName = 'uws') {
  const server = await testServer(t, store, engine, { RATE_LIMIT: 'off' });
  if (server) t.after(() => assert.equal(server.slots.taken, 0, 'every slot was released'));
  return server;
}

onStores(opened, (test) => {
  test('without since there is one checkpoint, and from there each changed row comes once, as it is now', async (server) => {
    await put(server, item('a', 'x'), item('b', 'x'), item('c', 'y', { id: 'own' }));
    const now = await ask(server, '/items/changes');
    assert.deepEqual([now.status, now.isWhole, dataOf(now)], [200, true, []]);
    assert.equal(now.lines.filter((line) => line.startsWith('{"checkpoint":')).length, 1);
    assert.equal(now.end?.upToDate, true);
    const nothing = await ask(server, `/items/changes?since=${now.cursor}`);
    assert.deepEqual([dataOf(nothing), nothing.end?.upToDate], [[], true]);

    await put(server, item('b', 'x', { note: 1 }), item('d', 'x'));
    await put(server, item('b', 'x', { note: 2 }), item('c', 'y', { id: 'own', note: 3 }));
    await remove(server, 'a');
    const path = `/items/changes?since=${now.cursor}`;
    const changed = await ask(server, `${path}&fields=note`);
    assert.deepEqual(dataOf(changed).sort(), [
      '{"_id":"c","note":3}',
      '{"id":"b","note":2}',
      '{"id":"d"}',
      '{"removed":{"id":"a"}}',
    ]);
    const { end } = changed;
    assert.deepEqual([end?.rows, end?.removed, end?.upToDate, end?.more], [3, 1, true, undefined]);

    const pieces: string[] = [];
    for (let cursor = now.cursor, isLast = false; !isLast;) {
      const piece = await ask(server, `/items/changes?since=${cursor}&limit=1&fields=note`);
      assert.ok(dataOf(piece).length <= 1);
      pieces.push(...dataOf(piece));
      isLast = piece.end?.upToDate ?? true;
      cursor = piece.cursor;
    }
    assert.deepEqual([...new Set(pieces)].sort(), dataOf(changed).sort(), 'limit bounds a piece');
  });

  test('with a filter, a row that comes to fit is sent, and one that fits no more is removed', async (server) => {
    await put(server, item('in', 'x'), item('out', 'y'), item('gone', 'x'), item('other', 'y'));
    const { cursor } = await ask(server, '/items/changes?category=x');
    await put(server, item('in', 'y'), item('out', 'x'), item('other', 'z'));
    await remove(server, 'gone');
    const changed = await ask(server, `/items/changes?category=x&since=${cursor}&fields=price`);
    assert.deepEqual(dataOf(changed).sort(), [
      '{"id":"out","price":1}',
      '{"removed":{"id":"gone"}}',
      '{"removed":{"id":"in"}}',
      '{"removed":{"id":"other"}}',
    ]);
  });

  test('a row whose key changes its type is removed before it comes, so that a copy by JSON keeps it', async (server) => {
    await put(server, item(new Int32(7), 'x'), item(new Int32(8), 'x'));
    const { cursor } = await ask(server, '/items/changes');
    await remove(server, new Int32(7));
    await put(server, item(new Double(7), 'y'));
    const copy = new Copy();
    await copy.read(`${server.url}/items/changes?since=${cursor}`);
    assert.deepEqual([...copy.rows.values()], ['{"id":7,"category":"y","price":1}']);
  });

  test('a long poll answers with the first change, and without one when its time is up', async (server) => {
    const { cursor } = await ask(server, '/items/changes');
    const copy = new Copy();
    let polled: Promise<Answer> = Promise.reject(new Error('not asked'));
    polled.catch(() => undefined);
    const waiting = new Promise<void>((resolve) => {
      polled = copy.read(`${server.url}/items/changes?since=${cursor}&wait=60`, {
        until: () => (resolve(), false),
      });
    });
    await waiting; // the checkpoint that comes before the wait
    await put(server, item('a', 'x'));
    const answer = await polled;
    assert.deepEqual([dataOf(answer), answer.end?.upToDate], [['{"id":"a","category":"x","price":1}'], true]);
    const silent = await ask(server, `/items/changes?since=${copy.cursor}&wait=1`);
    assert.deepEqual([dataOf(silent), silent.isWhole, silent.end?.rows], [[], true, 0]);
  });

  test('a stream that follows begins with a checkpoint, and only its cursor continues it', async (server) => {
    await put(server, ...Array.from({ length: 3 }, (_, n) => item(`a${n}`, 'x')));
    const copy = new Copy();
    const first = await copy.read(`${server.url}/items/stream?follow=true`, { until: () => true });
    assert.match(first.lines[0] ?? '', /^\{"checkpoint":/);
    const { cursor } = copy;
    const walking = await refusalOf(server, `/items/changes?since=${cursor}`);
    assert.deepEqual([walking.status, walking.code], [400, 'cursor-mismatch']);
    await remove(server, 'a1');
    await catchUp(copy, server, '/items/stream');
    assert.deepEqual([...copy.rows.keys()], ['"a0"', '"a2"']);
    const over = await ask(server, `/items/changes?since=${copy.cursor}`);
    assert.deepEqual([dataOf(over), over.end?.upToDate], [[], true], 'the walk is over');
  });

  test('a cursor of another set or filter, and a forged one, are refused', async (server) => {
    await put(server, item('a', 'x'));
    const { cursor } = await ask(server, '/items/changes');
    const filtered = await refusalOf(server, `/items/changes?category=x&since=${cursor}`);
    assert.deepEqual([filtered.code, filtered.parameter], ['cursor-mismatch', 'since']);
    const page = (await jsonOf(server.get('/items?limit=1'))) as { page: { nextCursor: string } };
    const ofPage = await refusalOf(server, `/items/changes?since=${page.page.nextCursor}`);
    assert.equal(ofPage.code, 'invalid-cursor');
    const content = Buffer.from(cursor, 'base64url').subarray(1, -4);
    for (const [name, forged] of Object.entries({
      empty: Buffer.alloc(0),
      short: content.subarray(0, 9),
      long: Buffer.concat([content, Buffer.of(1)]),
      form: Buffer.concat([Buffer.of(255), content.subarray(1)]),
      time: Buffer.concat([Buffer.of((content[0] ?? 0) | 3), content.subarray(1)]),
      token: Buffer.concat([content.subarray(0, -1), Buffer.of(200)]),
    })) {
      const answer = await server.get(`/items/changes?since=${forgedToken(19, forged)}`);
      await answer.body?.cancel();
      // Another time is a place, too: of MongoDB's history as well as of the log of the embedded store.
      const fits = name === 'token' ? [200, 400, 410] : [400];
      assert.ok(fits.includes(answer.status), `${name}: ${answer.status}`);
    }
  });

  test('parameters that exclude each other are refused', async (server) => {
    const { cursor } = await ask(server, '/items/changes');
    for (const [path, parameter] of [
      ['/items/changes?limit=1', 'limit'],
      ['/items/changes?wait=1', 'wait'],
      [`/items/changes?since=${cursor}&follow=true&limit=1`, 'limit'],
      [`/items/changes?since=${cursor}&follow=true&wait=1`, 'wait'],
      ['/items/stream?follow=true&limit=1', 'limit'],
      ['/items/stream?follow=true&after=a', 'after'],
      ['/items/stream?follow=true&part=a', 'part'],
      ['/items/stream?follow=true&consistency=snapshot', 'consistency'],
      ['/items/stream?follow=true&format=csv', 'follow'],
      ['/items/stream?follow=true&sort=price_asc', 'sort'],
      ['/items/stream?follow=true&sort=id_desc', 'sort'],
      ['/items/stream?follow=true&checkpoints=false', 'checkpoints'],
    ] as const) {
      const problem = await refusalOf(server, path);
      assert.deepEqual([problem.code, problem.parameter], ['conflicting-parameters', parameter], path);
    }
    const events = { accept: 'text/event-stream' };
    for (const query of ['follow=false', `since=${cursor}&limit=1`])
      assert.equal(
        (await refusalOf(server, `/items/changes?${query}`, events)).code,
        'conflicting-parameters',
      );
    for (const query of ['sort=id_asc', 'min_price=1', 'cursor=a', 'nope=1'])
      assert.equal((await refusalOf(server, `/items/changes?${query}`)).code, 'unknown-parameter');
  });

  test('history that is gone is 410, with the URL of the stream to begin anew with', async (server) => {
    await put(server, item('a', 'x'));
    const { cursor } = await ask(server, '/items/changes?category=x');
    await server.store.items.clear(NEVER);
    await put(server, item('b', 'x'));
    const path = `/items/changes?fields=price&category=x&since=${cursor}`;
    const { status, code, location } = await refusalOf(server, path);
    assert.equal(status, 410);
    assert.ok(['changes-expired', 'collection-replaced'].includes(code));
    assert.equal(location, '/items/stream?follow=true&fields=price&category=x');
    const copy = new Copy();
    await copy.read(server.url + location, { until: ({ isUpToDate }) => isUpToDate });
    assert.deepEqual([...copy.rows.values()], ['{"id":"b","price":1}']);
  });

  test('a feed whose history is lost while it runs says so in its last line, and is cut', async (server) => {
    await put(server, item('a', 'x'));
    const clearing: Promise<unknown>[] = [];
    const answer = await new Copy().read(`${server.url}/items/stream?follow=true`, {
      until: ({ isUpToDate }) => {
        if (isUpToDate && clearing.length === 0) clearing.push(server.store.items.clear(NEVER));
        return false;
      },
    });
    await Promise.all(clearing);
    assert.deepEqual([answer.isWhole, answer.end], [false, null]);
    assert.ok(['changes-expired', 'collection-replaced'].includes(answer.error?.code ?? ''));
  });

  test('a header and the end of a stream give the start of its changes', async (server) => {
    await put(server, item('a', 'x'), item('b', 'y'));
    for (const [path, wants] of [
      ['/items/stream', true],
      ['/items/stream?format=csv', true],
      ['/items/stream?sort=price_desc&category=x', true],
      ['/items/partitions?n=2&category=x', true],
      ['/items/stream?limit=1', false],
      ['/items/stream?after=a', false],
      ['/items/stream?min_price=1', false],
    ] as const) {
      const response = await server.get(path);
      const cursor = response.headers.get('changes-from');
      await response.text();
      assert.equal(cursor !== null, wants, path);
      if (cursor === null) continue;
      await put(server, item('a', 'x', { note: path }));
      const filter = path.includes('category') ? '&category=x' : '';
      const changed = await ask(server, `/items/changes?fields=note&since=${cursor}${filter}`);
      assert.deepEqual(dataOf(changed), [JSON.stringify({ id: 'a', note: path })]);
    }
    const checked = await server.get('/items/stream?checkpoints=true');
    const end = (await checked.text()).trim().split('\n').at(-1) ?? '';
    const { changes } = (JSON.parse(end) as { end: { changes: string } }).end;
    assert.equal(changes, checked.headers.get('changes-from'));
    assert.equal(checked.headers.get('incremental'), '?1');
    assert.equal(checked.headers.get('x-accel-buffering'), 'no');
  });
});

onCombinations(
  (t, { store, engine }) => opened(t, store, engine),
  (test) => {
    test('a page with an EventSource needs its URL only, and goes on after a cut', async (server) => {
      const url = `${server.url}/items/changes?category=x`;
      const one = await readEvents(url, {}, async (events) => {
        if (events.length === 1) await put(server, item('a', 'x', { note: 'b\n\nc' }), item('b', 'y'));
        return events.some(({ data }) => data.startsWith('{"removed"'));
      });
      assert.equal(one.contentType, 'text/event-stream');
      assert.deepEqual(
        one.events.filter(({ name }) => name === 'message').map(({ data }) => data),
        ['{"id":"a","category":"x","price":1,"note":"b\\n\\nc"}', '{"removed":{"id":"b"}}'],
      );
      assert.equal(one.events[0]?.name, 'checkpoint');
      await remove(server, 'a');
      const again = await readEvents(url, { 'last-event-id': one.lastEventId }, (events) =>
        events.some(({ data }) => data === '{"removed":{"id":"a"}}'),
      );
      assert.ok(again.events.length > 0);
      const faulty = await refusalOf(server, '/items/changes', {
        accept: 'text/event-stream',
        'last-event-id': 'x',
      });
      assert.deepEqual([faulty.code, faulty.parameter], ['invalid-cursor', 'Last-Event-ID']);
    });

    test('HEAD has the head of GET and no body, and OPTIONS lists the methods', async (server) => {
      await put(server, item('a', 'x'));
      const { cursor } = await ask(server, '/items/changes');
      for (const path of [
        '/items/changes',
        `/items/changes?since=${cursor}&follow=true`,
        '/items/stream?follow=true',
      ]) {
        const response = await fetch(server.url + path, { method: 'HEAD' });
        assert.deepEqual([response.status, await response.text()], [200, '']);
        assert.match(response.headers.get('content-type') ?? '', /^application\/x-ndjson/);
      }
      const options = await fetch(`${server.url}/items/changes`, { method: 'OPTIONS' });
      assert.equal(options.headers.get('allow'), 'GET, HEAD, OPTIONS');
      const listed = (await jsonOf(server.get('/resources'))) as {
        resources: { name: string; links: { changes?: string } }[];
      };
      assert.equal(listed.resources.find(({ name }) => name === 'items')?.links.changes, '/items/changes');
    });

    test('a server that stops ends its feeds with a checkpoint and an end, and their readers lose nothing', async (server) => {
      await put(server, item('a', 'x'));
      const { cursor } = await ask(server, '/items/changes');
      const follow = new Copy();
      const poll = new Copy();
      const until = () => {
        if (follow.isUpToDate && poll.isUpToDate) void server.close();
        return false;
      };
      const answers = await Promise.all([
        follow.read(`${server.url}/items/stream?follow=true`, { until }),
        poll.read(`${server.url}/items/changes?since=${cursor}&wait=60`, { until }),
      ]);
      assert.deepEqual(
        answers.map(({ isWhole, end }) => [isWhole, end?.upToDate, end?.more]),
        [
          [true, true, true],
          [true, true, undefined],
        ],
      );
      assert.match(answers[0].lines.at(-2) ?? '', /^\{"checkpoint":/);
    });
  },
);

async function catchUp(copy: Copy, server: TestServer, path: string): Promise<void> {
  await copy.read(server.url + copy.next(path), { until: ({ isUpToDate }) => isUpToDate });
}

test('changes of a resource have no hidden fields, and take filters that its indexes answer', async (t) => {
  const RESOURCES_FILE = await resourcesFile(t, { resources: { orders: { hide: ['secret'] } } });
  const rows = ['a', 'b', 'c'].map((_id, n) => ({ _id, status: n, secret: `s${n}` }));
  const orders = { name: 'orders', rows, indexes: [['status']] };
  const server = await resourceServer(t, 'mongodb', orders, { RESOURCES_FILE, EXPOSE: '' });
  if (!server) return;
  const copy = new Copy();
  const answer = await copy.read(`${server.url}/orders/stream?follow=true&status=1`, {
    until: ({ isUpToDate }) => isUpToDate,
  });
  assert.deepEqual(dataOf(answer), ['{"id":"b","status":1}']);
  for (const [query, code] of [
    [`status=2&since=${copy.cursor}`, 'cursor-mismatch'],
    ['status.gte=1', 'conflicting-parameters'],
    ['nothing=1', 'not-indexed'],
  ] as const)
    assert.equal((await refusalOf(server, `/orders/changes?${query}`)).code, code);
});
