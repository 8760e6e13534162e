import type { TestContext } from 'node:test';
import assert from 'node:assert/strict';
import { NO_MONGOD, onEach, type Adapter, type ContractTest } from '../../contracts/adapters.ts';
import { COMBINATIONS, STORES, testServer } from './server.ts';
import type { EngineName, StoreName, TestServer } from './server.ts';

interface Kind {
  readonly store: StoreName;
  readonly engine: EngineName;
}

/** Declares tests for each store. Each test gets what `open` resolves with, and is skipped where there is no such store. */
export function onStores<Opened>(
  open: (t: TestContext, store: StoreName) => Promise<Opened | null>,
  declare: (test: ContractTest<Opened>, store: StoreName) => void,
  stores: readonly StoreName[] = STORES,
): void {
  for (const store of stores)
    onEach([adapter(store, store, (t) => open(t, store))], (test) => declare(test, store));
}

/** The same for MongoDB alone. */
export function onMongo<Opened>(
  open: (t: TestContext) => Promise<Opened | null>,
  declare: (test: ContractTest<Opened>) => void,
): void {
  onStores(open, declare, ['mongodb']);
}

/** The same for each store and each engine. */
export function onCombinations<Opened>(
  open: (t: TestContext, kind: Kind) => Promise<Opened | null>,
  declare: (test: ContractTest<Opened>, kind: Kind) => void,
): void {
  for (const [store, engine] of COMBINATIONS) {
    const kind = { store, engine };
    onEach([adapter(`${store} behind ${engine}`, store, (t) => open(t, kind))], (test) =>
      declare(test, kind),
    );
  }
}

/** Declares tests that each get an empty server of their own. */
export function onServers(
  of: 'stores' | 'combinations',
  declare: (test: ContractTest<TestServer>, kind: Kind) => void,
): void {
  if (of === 'combinations') onCombinations((t, { store, engine }) => testServer(t, store, engine), declare);
  else
    onStores(
      (t, store) => testServer(t, store, 'uws'),
      (test, store) => declare(test, { store, engine: 'uws' }),
    );
}

function adapter<Opened>(
  name: string,
  store: StoreName,
  open: (t: TestContext) => Promise<Opened | null>,
): Adapter<Opened> {
  return {
    name,
    skip: store === 'mongodb' && NO_MONGOD,
    open: async (t) => (await open(t)) ?? assert.fail('the test is not skipped without a mongod'),
  };
}
