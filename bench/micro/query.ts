/** The cost of parsing a query: node --import tsx bench/micro/query.ts [turns] */
import assert from 'node:assert/strict';
import { numberRange } from '../../test/support/store/number-range.ts';
import { parseQuery } from '../../src/input/query.ts';
import { resourceOf } from '../../src/resources/open.ts';
import { locatedOwn } from '../../src/resources/locate.ts';
import { itemsOf } from '../../src/resources/own.ts';
import { readPlan } from '../../src/resources/query/read-plan.ts';
import type { Collection } from '../../src/store/store.ts';
import { readStreamQuery, streamParameters } from '../../src/resources/stream/parameters.ts';
import { pageParameters, pageQuery } from '../../src/resources/page/parameters.ts';
import { Slots } from '../../src/store/turns/slots.ts';
import { printMachine, takeTurns } from './turns.ts';

const turns = Number(process.argv[2]) || 20_000; // --micro is not a number
const limits = { maxLimit: 1000, maxOffset: 1_000_000 };
const names = [['price'], ['category'], ['category', 'price']];
const indexes = names.map((paths) => ({
  name: [...paths, '_id'].map((path) => `${path}_1`).join('_'),
  keys: [...paths, '_id'].map((path) => ({ path, sign: 1 as const })),
  isUnique: false,
}));
const rows = { indexes: () => Promise.resolve(indexes) } as Partial<Collection> as Collection;
const resource = resourceOf(locatedOwn(itemsOf(undefined)), rows, {
  store: 'sqlite',
  streamsOf: () => assert.fail('nothing is read'),
  slots: new Slots(),
});
const pageNames = pageParameters(limits, resource.form.parameters, true).map(({ name }) => name);
const page = pageQuery(limits);
const streamNames = streamParameters(resource.form.parameters).map(({ name }) => name);
const { signal } = new AbortController();
const readPage = (raw: string) => page(parseQuery(raw, pageNames), resource);
const readStream = (raw: string) => readStreamQuery(parseQuery(raw, streamNames), resource);

const FULL =
  'limit=100&sort=price_desc&category=garden%20tools&min_price=1.5&max_price=99&fields=name,price&offset=20';

const full = readPage(FULL);
assert.deepEqual(await readPlan(parseQuery(FULL, pageNames), resource, signal), {
  index: indexes[2],
  sort: 'price',
  direction: -1,
  equals: [{ path: 'category', value: 'garden tools' }],
  range: numberRange('1.5', '99'),
});
assert.deepEqual(full.selection.fields, ['name', 'price']);
assert.equal(full.skip, 20);

printMachine();
takeTurns(
  {
    'a page without parameters': { work: () => readPage('').limit, expected: 50 },
    'a page with a limit': { work: () => readPage('limit=100').limit, expected: 100 },
    'a page with seven parameters': { work: () => readPage(FULL).limit, expected: 100 },
    'a stream with two': { work: () => readStream('sort=price_asc&limit=7').limit, expected: 7 },
    'a mistake, with its message': {
      work: () => {
        try {
          return readPage('limit=5000').limit;
        } catch (error) {
          return (error as Error).message.length;
        }
      },
      expected: 'limit must be an integer from 1 to 1000; it came as "5000".'.length,
    },
  },
  turns,
);
