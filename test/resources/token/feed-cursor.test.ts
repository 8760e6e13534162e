import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeFeedCursor } from '../../../src/resources/token/feed-cursor.ts';
import { encodeCursor } from '../../../src/resources/token/cursor.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { MaxKey, MinKey } from '../../../src/store/values/bson.ts';
import type { Plan } from '../../../src/store/store.ts';
import { testServer } from '../../support/process/server.ts';
import { plainPart } from '../../support/resources/tokens.ts';

const deep = (levels: number): unknown => (levels === 0 ? 1 : { a: deep(levels - 1) });
const PLACES = {
  MinKey: new MinKey(),
  MaxKey: new MaxKey(),
  'a document 250 levels deep': deep(250),
  'a document like an operator': { $ne: 1 },
};
const AHEAD = 2n ** 63n - 1n;
const TIMES = { 'no time': 0n, 'a time ahead': AHEAD };
const UP: Plan = { sort: '_id', direction: 1 };
const DOWN: Plan = { sort: '_id', direction: -1 };
const PRICES: Plan = { sort: 'price', direction: 1 };

/** The places that have all rows behind or before them. The others have none. */
const ALL = /(behind|behind the id|from) MinKey|(before|to) (MaxKey|a document)/;

/** Requests whose token has a sound checksum and a content that no server wrote, by their name. */
function* forged(): Generator<readonly [name: string, path: string]> {
  const after = makeBookmark({ _id: 'a' });
  for (const [name, _id] of Object.entries(PLACES)) {
    const at = makeBookmark({ _id });
    yield [`a page behind ${name}`, `/items?cursor=${encodeCursor('items', UP, at)}`];
    yield [`a page before ${name}`, `/items?sort=id_desc&cursor=${encodeCursor('items', DOWN, at)}`];
    yield [`a stream behind ${name}`, `/items/stream?cursor=${encodeCursor('items', UP, at)}`];
    yield [
      `a page behind the id ${name} of a price`,
      `/items?sort=price_asc&cursor=${encodeCursor('items', PRICES, makeBookmark({ price: 1, _id }))}`,
    ];
    yield [`a part from ${name}`, `/items/stream?part=${plainPart({ from: at })}`];
    yield [`a part to ${name}`, `/items/stream?part=${plainPart({ to: at })}`];
  }
  for (const [name, time] of Object.entries(TIMES)) {
    const since = encodeCursor('items', { ...UP, since: time }, after);
    const at = encodeCursor('items', { ...UP, at: time }, after);
    yield [`a stream since ${name}`, `/items/stream?cursor=${since}`];
    if (time === 0n) yield [`a page since ${name}`, `/items?cursor=${since}`];
    yield [`a stream at ${name}`, `/items/stream?cursor=${at}`];
    yield [`a part since ${name}`, `/items/stream?part=${plainPart({ from: after }, { since: time })}`];
    const place = { token: Uint8Array.of(1, 2, 3), seen: time };
    const feed = encodeFeedCursor('items', UP, { place, walk: 'over', identity: undefined }) ?? '';
    yield [`changes since ${name}`, `/items/changes?since=${feed}`];
  }
}

for (const store of ['sqlite', 'mongodb'] as const)
  test(`forged places are 400 (${store})`, async (t) => {
    const server = await testServer(t, store, 'node');
    if (!server) return;
    await server.insert(['a', 'b', 'c'].map((_id) => ({ _id, category: 'a', price: 1 })));
    const wrong: string[] = [];
    for (const [name, path] of forged()) {
      const response = await server.get(path);
      const body = await response.text();
      // Items that another program inserted may have the id MinKey, so MongoDB can have such a place. The embedded store
      // orders values of every type, so it has each of these places, and what lies behind it.
      const isPlace = store === 'mongodb' ? /MinKey|operator/.test(name) : /M..Key|a document/.test(name);
      const rows = body.match(/"id":"[abc]"/g) ?? [];
      const isFit =
        response.status === 400 || (isPlace && response.ok && rows.length === (ALL.test(name) ? 3 : 0));
      if (!isFit) wrong.push(`${name}: ${response.status} ${body.slice(0, 120)}`);
    }
    assert.deepEqual(wrong, []);
  });
