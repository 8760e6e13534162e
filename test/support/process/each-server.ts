import type { TestContext } from 'node:test';
import { shared, testsWith, type ContractTest } from '../tests-with.ts';
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
): void {
  for (const store of STORES)
    declare(
      testsWith((t) => open(t, store), store),
      store,
    );
}

/** What `open` makes for the first test of a file on each store, for all of its tests on that store. */
export function sharedByStore<Opened>(
  open: (t: TestContext, store: StoreName) => Promise<Opened | null>,
): (t: TestContext, store: StoreName) => Promise<Opened | null> {
  const ofStore = new Map(STORES.map((store) => [store, shared((t) => open(t, store))]));
  return (t, store) => ofStore.get(store)?.(t) ?? Promise.resolve(null);
}

/** The same for MongoDB alone. */
export function onMongo<Opened>(
  open: (t: TestContext) => Promise<Opened | null>,
  declare: (test: ContractTest<Opened>) => void,
): void {
  declare(testsWith(open, 'mongodb'));
}

/** The same for each store and each engine. */
export function onCombinations<Opened>(
  open: (t: TestContext, kind: Kind) => Promise<Opened | null>,
  declare: (test: ContractTest<Opened>, kind: Kind) => void,
): void {
  for (const [store, engine] of COMBINATIONS) {
    const kind = { store, engine };
    declare(
      testsWith((t) => open(t, kind), `${store} behind ${engine}`),
      kind,
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
