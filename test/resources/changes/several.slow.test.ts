import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Copy, type Answer } from '../../support/resources/copy.ts';
import { readEvents } from '../../support/resources/events.ts';
import { bearer, type KeyGiven } from '../../support/access/keyed.ts';
import { testClient } from '../../support/store/mongo/mongo.ts';
import { NEVER } from '../../support/store/reading.ts';
import {
  ask,
  customer,
  dataOf,
  KEYS,
  opened,
  order,
  PATH,
  problemOf,
  row,
  WHERE,
  type Opened,
} from '../../support/resources/several.ts';
import { onCombinations, onStores } from '../../support/process/each-server.ts';

onStores(opened, (test) => {
  test('come in one response, each line with the name of its set, and one cursor is the place in all', async (at) => {
    const { orders, customers } = at;
    const now = await ask(at);
    assert.deepEqual([dataOf(now), now.end?.upToDate, now.isWhole], [[], true, true]);
    await orders.put(row('o1'));
    await customers.put(row('c1'));
    await customers.put(row('c1', 1));
    await orders.remove('orders-0');
    const removed = '{"resource":"orders","removed":{"id":"orders-0"}}';
    const changed = await ask(at, `&since=${now.cursor}`);
    assert.deepEqual(dataOf(changed), [removed, order('o1'), customer('c1', 1)].sort());
    assert.deepEqual([changed.end?.rows, changed.end?.removed, changed.end?.upToDate], [2, 1, true]);
    const none = await ask(at, `&since=${changed.cursor}&wait=1`);
    assert.deepEqual([dataOf(none), none.end?.upToDate], [[], true]);

    const pieces: string[] = [];
    let cursor = now.cursor;
    let isLast = false;
    while (!isLast) {
      const piece = await ask(at, `&since=${cursor}&limit=2`);
      assert.ok(dataOf(piece).length <= 2);
      pieces.push(...dataOf(piece));
      cursor = piece.cursor;
      isLast = piece.end?.upToDate ?? true;
      assert.ok(pieces.length < 20, 'each piece goes on');
    }
    assert.deepEqual([...new Set(pieces)].sort(), dataOf(changed), 'each set has its share of a limit');
  });

  test('begin at the cursors of the single sets, joined by dots', async (at) => {
    const from = async (name: string) => {
      const stream = await at.server.as('all', `/${name}/stream`);
      await stream.text();
      return stream.headers.get('changes-from') ?? '';
    };
    const of = await from('orders');
    const ofOthers = await from('customers');
    await at.customers.put(row('c1'));
    assert.deepEqual(dataOf(await ask(at, `&since=${of}.${ofOthers}`)), [customer('c1')]);
    const swapped = await problemOf(at, `${PATH}&since=${ofOthers}.${of}`);
    assert.deepEqual([swapped.status, swapped.code], [400, 'cursor-mismatch']);
    assert.match(swapped.detail, /^orders: /);
    for (const cursor of ['x', of, `${of}.`, `${of}.${ofOthers}.${of}`, `${of}.${ofOthers.slice(1)}`]) {
      const { code, parameter } = await problemOf(at, `${PATH}&since=${cursor}`);
      assert.deepEqual([code, parameter], ['invalid-cursor', 'since'], cursor);
    }
  });

  test('each set can have filters and fields of its own', async (at) => {
    const { orders, customers } = at;
    const own = '&orders.tenant=acme&orders.fields=n&customers.tenant=other';
    const now = await ask(at, own);
    await orders.put(row('o1', 7));
    await orders.put({ ...row('o2'), tenant: 'other' });
    await orders.put({ ...row('orders-0'), tenant: 'other' });
    await customers.put(row('c1'));
    await customers.put({ ...row('c2'), tenant: 'other' });
    const changed = await ask(at, `${own}&since=${now.cursor}`);
    const mine = dataOf(changed).filter((line) => !/"removed":\{"id":"(o2|c1)"/.test(line)); // these never matched
    assert.deepEqual(mine, [
      '{"resource":"customers","row":{"id":"c2","tenant":"other","n":0}}',
      '{"resource":"orders","removed":{"id":"orders-0"}}',
      '{"resource":"orders","row":{"id":"o1","n":7}}',
    ]);
    const other = await problemOf(at, `${PATH}&since=${changed.cursor}`);
    assert.deepEqual([other.code, other.parameter], ['cursor-mismatch', 'since']);
    const refused = async (query: string) => {
      const { status, code, parameter, detail } = await problemOf(at, PATH + query);
      return [status, code, parameter, detail];
    };
    for (const name of [
      'tenant.eq',
      'users.tenant',
      'orders.',
      'orders.limit',
      'orders.sort',
      'x.orders.n',
    ]) {
      const [, code, parameter] = await refused(`&${name}=1`);
      assert.deepEqual([code, parameter], ['unknown-parameter', name]);
    }
    assert.deepEqual((await refused('&orders.other=1'))[1], 'not-indexed');
    assert.match(String((await refused('&orders.other=1'))[3]), /^orders: No index answers/);
    assert.deepEqual((await refused('&orders.fields=a..b'))[2], 'orders.fields');
    assert.deepEqual((await refused('&customers.tenant=int:x'))[2], 'customers.tenant');
  });

  test('a long poll ends with the first change of any set', async (at) => {
    const { cursor } = await ask(at);
    const copy = new Copy(false, bearer('all'));
    const writes: Promise<void>[] = [];
    const answer = await copy.read(`${at.server.url}${PATH}&since=${cursor}&wait=60`, {
      until: ({ isUpToDate }) => {
        if (isUpToDate && writes.length === 0) writes.push(at.customers.put(row('c1')));
        return false;
      },
    });
    await Promise.all(writes);
    assert.deepEqual([dataOf(answer), answer.end?.upToDate], [[customer('c1')], true]);
  });

  test('names that cannot be read are refused, and the answer lists those that can', async (at) => {
    const many = Array.from({ length: 17 }, (_, n) => `r${n}`).join();
    for (const query of [
      '',
      '?resources=',
      '?resources=orders,orders',
      '?resources=orders,',
      `?resources=${many}`,
    ]) {
      const { code, parameter } = await problemOf(at, `/changes${query}`);
      assert.deepEqual([code, parameter], ['invalid-parameter', 'resources'], query);
    }
    const unknown = await problemOf(at, '/changes?resources=orders,nope');
    assert.deepEqual([unknown.status, unknown.code], [404, 'not-found']);
    assert.match(unknown.detail, /"nope".* orders, customers|customers, orders/);
    const { cursor } = await ask(at);
    for (const [query, code] of [
      ['&limit=2', 'conflicting-parameters'],
      [`&since=${cursor}&follow=true&wait=1`, 'conflicting-parameters'],
      [`&since=${cursor}&limit=1`, 'invalid-parameter'],
      ['&tenant=acme', 'unknown-parameter'],
    ] as const)
      assert.equal((await problemOf(at, PATH + query)).code, code, query);

    for (const name of ['customers', 'nope']) {
      const { status, code, detail } = await problemOf(
        at,
        `/changes?resources=orders,${name}`,
        'orders-only',
      );
      assert.deepEqual([status, code], [403, 'forbidden']);
      assert.equal(detail, `The key does not open "${name}". It opens orders.`, 'whether it exists or not');
    }
    const reads = await problemOf(at, PATH, 'reads');
    assert.deepEqual([reads.status, reads.code], [403, 'forbidden']);
  });

  test('history of one set that is gone is 410, which names it, and the others go on at their places', async (at) => {
    const { server, orders, customers } = at;
    const filter = '&orders.tenant=acme&orders.fields=n';
    const { cursor } = await ask(at);
    const { cursor: filtered } = await ask(at, filter);
    const running = follow(at, `&since=${cursor}&follow=true`, async () => {
      const rows = await server.store.open({ name: 'orders', collection: 'orders', indexes: [['tenant']] });
      if ('clear' in rows) await rows.clear(NEVER);
    });
    const cut = await running;
    assert.deepEqual([cut.isWhole, cut.end], [false, null]);
    assert.match(JSON.stringify(cut.error), /"detail":"orders: /);
    await orders.put(row('o1'));
    await customers.put(row('c1'));
    const { status, location, detail } = await problemOf(at, `${PATH}&since=${cursor}`);
    assert.deepEqual([status, location], [410, '/orders/stream']);
    assert.match(detail, /^orders: /);
    const narrow = await problemOf(at, `${PATH}${filter}&since=${filtered}`);
    assert.equal(narrow.location, '/orders/stream?tenant=acme&fields=n');
    const again = await server.as('all', location ?? '');
    await again.text();
    const joined = `${again.headers.get('changes-from')}.${cursor.split('.')[1]}`;
    assert.deepEqual(dataOf(await ask(at, `&since=${joined}`)), [customer('c1')]);
  });

  test('a key that loses one of its sets loses the stream, and other changes of keys do not matter', async (at) => {
    const { server, orders } = at;
    const keys = (acme: object): KeyGiven[] =>
      KEYS.map((one) => (one.name === 'acme' ? { ...one, ...acme } : one));
    const more = { resources: ['orders', 'customers', 'items'] };
    let step = 0;
    const answer = await follow(
      at,
      '&follow=true',
      async () => {
        assert.equal(await server.rewrite(keys(more)), true);
        await orders.put(row('o1'));
      },
      async (copy) => {
        if (!copy.rows.has('orders "o1"') || step++ > 0) return;
        assert.equal(await server.rewrite(keys({ where: { orders: WHERE.orders } })), true);
        await orders.put(row('o2'));
      },
      'acme',
    );
    assert.deepEqual([dataOf(answer), answer.isWhole], [[order('o1')], false]);
  });
});

onCombinations(
  (t, { store, engine }) => opened(t, store, engine),
  (test) => {
    test('as server-sent events they need a URL only, and go on after a cut', async (at) => {
      const data = (events: readonly { readonly name: string; readonly data: string }[]) =>
        events.filter(({ name }) => name === 'message').map((one) => one.data);
      const headers = bearer('all');
      const one = await readEvents(at.server.url + PATH, headers, async (events) => {
        if (events.length === 1) await at.orders.put(row('o1'));
        return data(events).length > 0 && events.at(-1)?.name === 'checkpoint';
      });
      assert.deepEqual(data(one.events), [order('o1')]);
      assert.match(one.lastEventId, /^[\w-]+\.[\w-]+$/);
      await at.customers.remove('customers-0');
      const again = { ...headers, 'last-event-id': one.lastEventId };
      const removed = '{"resource":"customers","removed":{"id":"customers-0"}}';
      const two = await readEvents(at.server.url + PATH, again, (events) => data(events).includes(removed));
      // A checkpoint of the customers may come between the row and the place behind it. Then the row comes again.
      const others = data(two.events).filter((line) => line !== order('o1'));
      assert.deepEqual(others, [removed]);
    });

    test('they take one slot of streams, and HEAD takes none for long', async (at) => {
      const { server } = at;
      const head = await server.as('one-stream', `${PATH}&follow=true`, { method: 'HEAD' });
      assert.equal(head.status, 200);
      const open = await server.as('one-stream', `${PATH}&follow=true`);
      assert.equal(open.status, 200);
      assert.equal((await problemOf(at, '/orders/changes', 'one-stream')).code, 'too-many-streams');
      await open.body?.cancel();
    });

    test('a server that stops ends them with a checkpoint and an end', async (at) => {
      const answer = await follow(at, '&follow=true', () => at.server.close());
      assert.deepEqual([answer.isWhole, answer.end?.upToDate, answer.end?.more], [true, true, true]);
    });
  },
);

/** Follows until the server ends the answer. `first` runs when it is up to date, `then` after each later line. */
async function follow(
  { server }: Opened,
  query: string,
  first: () => Promise<unknown>,
  then: (copy: Copy) => Promise<void> = () => Promise.resolve(),
  name = 'all',
): Promise<Answer> {
  const copy = new Copy(false, bearer(name));
  const work: Promise<unknown>[] = [];
  const answer = await copy.read(server.url + PATH + query, {
    until: (now) => {
      if (work.length > 0) work.push(then(now));
      else if (now.isUpToDate) work.push(first());
      return false;
    },
  });
  await Promise.all(work);
  return answer;
}

test('a collection that is dropped ends the changes of several sets, whose cursor is then refused', async (t) => {
  const at = await opened(t, 'mongodb');
  if (!at) return;
  const client = testClient(t, at.server.mongo);
  const answer = await follow(at, '&follow=true', () => client.db().dropCollection('orders'));
  const last = answer.error ? JSON.stringify(answer.error) : JSON.stringify(answer.end);
  assert.match(last, /"detail":"orders: |"more":true/);
  await at.server.reload();
  assert.equal((await problemOf(at, PATH)).status, 404);
});
