import type { Log } from '../log.ts';
import type { Index } from '../store/indexes.ts';
import type { StreamReader } from '../store/readers.ts';
import type { Collection, Found, Store } from '../store/store.ts';
import { AppError, storeUnfit } from '../errors.ts';
import { EVERYTHING, Selection, type SelectionPaths } from '../rows/selection.ts';
import { KEY } from '../store/bookmark.ts';
import type { IdType } from './row/id.ts';
import { reasonOf } from '../error-reason.ts';
import { nameFault, type Declared } from './declarations.ts';
import { openForm } from './query/form.ts';
import { ITEM_COLLECTION } from './item-collection.ts';
import { ITEM_FORM, ITEM_KINDS } from './items.ts';
import { KindTable } from './query/kind-table.ts';
import { lateCollection } from './late-collection.ts';
import type { Listed } from './list.ts';
import { locate, type Located } from './locate.ts';
import { askableOf, indexLine, withoutSuffix } from './query/not-indexed.ts';
import { indexesOf, type Resource } from './query/resource.ts';

/** All faults of the resources, one sentence each. They need the operator, so the server does not start. */
export class ResourceFaults extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.name = 'ResourceFaults';
    this.faults = faults;
  }
}

export interface OpenResourcesOptions {
  readonly store: Pick<Store, 'keepsDeclarations' | 'open' | 'list' | 'declared'>;
  /** Makes the reader of streams of a collection. */
  readonly streamsOf: (rows: Collection) => StreamReader;
  readonly log: Log;
}

/** A resource that is open, with the indexes that it had at start. */
export interface OpenResource {
  readonly resource: Resource;
  readonly indexes: readonly Index[];
  /** The kinds of its fields that were found last. */
  readonly kinds?: Listed['kinds'];
}

/**
 * Opens the declared resources, and those that only the store itself has declarations of: what the operator declares
 * of a collection counts. Rejects with ResourceFaults, which lists everything that the operator has to mend.
 */
export async function openResources(
  declared: readonly Declared[],
  options: OpenResourcesOptions,
): Promise<readonly OpenResource[]> {
  const named = new Set(declared.map(({ collection }) => collection));
  const kept = (await options.store.declared())
    .filter(({ collection }) => !named.has(collection))
    .map((one) => ({ ...one, indexes: [], place: one.name }));
  if (declared.length + kept.length === 0) return [];
  const own = declared.length > 0 ? await listOwn(options.store) : [];
  const located = [
    ...(await Promise.all(declared.map((one) => locate(one, own, options.store)))),
    ...kept.map((one): Located => ({ ...one, database: one.database })),
  ];
  const faults = located.flatMap((one) => (typeof one === 'string' ? [one] : []));
  const sound = located.filter((one) => typeof one !== 'string');
  for (const [n, { name, place }] of sound.entries()) {
    const fault = nameFault(name);
    if (fault !== undefined) faults.push(`${place}: ${fault}`);
    if (sound.findIndex((other) => other.name === name) < n)
      faults.push(`${place}: another resource has the name ${name}, too`);
  }
  const opened = await Promise.all(sound.map((one) => openOne(one, own, options)));
  faults.push(...opened.filter((one) => typeof one === 'string'));
  if (faults.length > 0) throw new ResourceFaults([...new Set(faults)]);
  return opened.filter((one) => typeof one !== 'string');
}

/** Opens the items, whose collection the store itself makes sure of. `rows`: that collection. */
export function openItems(
  rows: Collection,
  { keepsDeclarations }: Pick<Store, 'keepsDeclarations'>,
  streamsOf: OpenResourcesOptions['streamsOf'],
  idType?: IdType,
): OpenResource {
  const { name, collection, indexes } = ITEM_COLLECTION;
  const resource: Resource = {
    ...{ name, rows, form: ITEM_FORM, shown: EVERYTHING },
    ...(idType && { idType }),
    declared: indexes.map((paths) => {
      const keys = [...paths, KEY].map((path) => ({ path, sign: 1 as const }));
      return { name: keys.map(({ path }) => `${path}_1`).join('_'), keys, isUnique: false };
    }),
    streams: streamsOf(rows),
    openStreams: streamsOf,
    kinds: ITEM_KINDS,
    found: new KindTable(rows),
    indexLine: indexLine(keepsDeclarations, name, undefined, collection),
  };
  return { resource, indexes: [] };
}

/** The collections of the store's own database. Null while the store is away. */
async function listOwn(store: Pick<Store, 'list'>): Promise<readonly Found[] | null> {
  return store.list().catch((error: unknown) => {
    if (error instanceof AppError && error.code === 'store-unavailable') return null;
    throw error;
  });
}

/** Opens a resource and logs what can be asked of it. Resolves with a fault when the collection cannot be served. */
async function openOne(
  located: Located,
  own: readonly Found[] | null,
  options: OpenResourcesOptions,
): Promise<OpenResource | string> {
  const { name, database, collection, indexes = [], hide, show, fields = {}, place, unsure } = located;
  const { store, streamsOf, log } = options;
  const shown = shownOf({ hide, show }, place);
  if (typeof shown === 'string') return shown;
  try {
    const rows = unsure
      ? lateCollection(() => openLate(located, unsure, options))
      : await store.open({ name, collection, indexes, ...(database !== undefined && { database }) });
    const resource: Resource = {
      name,
      rows,
      form: openForm(name),
      declared: [],
      streams: streamsOf(rows),
      openStreams: streamsOf,
      shown,
      kinds: new Map(Object.entries(fields)),
      found: new KindTable(rows),
      indexLine: indexLine(store.keepsDeclarations, name, database ?? own?.[0]?.database, collection),
    };
    if (own) return { resource, indexes: await logIndexes(resource, log) };
    log.warn({ resource: name }, `/${name} is not available yet: the store is away`);
    return { resource, indexes: [] };
  } catch (error) {
    if (error instanceof AppError) throw error;
    return `${place}: ${reasonOf(error)}`;
  }
}

/**
 * Opens a collection that was not known at start, because the store was away. What would have stopped the start then
 * makes the resource unfit, and the log says why.
 */
async function openLate(
  { name, place, indexes = [] }: Located,
  declared: Declared,
  { store, log }: OpenResourcesOptions,
): Promise<Collection> {
  const refuse = (fault: string): never => {
    log.warn({ resource: name, reason: fault }, `/${name} cannot be served`);
    throw storeUnfit(
      `The resource ${name} cannot be served now. The log of the server says what to do.`,
      new Error(fault),
    );
  };
  const found = await locate(declared, await store.list(), store);
  if (typeof found === 'string') return refuse(found);
  const { database, collection } = found;
  if (found.name !== name)
    return refuse(
      `${place}: ${collection} is a collection of the database of MONGODB_URI, which was away at start. Start the server again: it then serves /${found.name}`,
    );
  try {
    const rows = await store.open({ name, collection, indexes, ...(database !== undefined && { database }) });
    log.info({ resource: name }, `serving /${name}`);
    return rows;
  } catch (error) {
    return error instanceof AppError ? Promise.reject(error) : refuse(`${place}: ${reasonOf(error)}`);
  }
}

/** What of the rows may leave the server, or why the declaration is at fault. */
function shownOf(paths: Pick<SelectionPaths, 'hide' | 'show'>, place: string): Selection | string {
  try {
    return new Selection(paths);
  } catch (error) {
    if (error instanceof RangeError) return `${place}: ${error.message}`;
    throw error;
  }
}

/** Logs one line: what can be asked, and what would allow more. Resolves with the indexes; none while the store is away. */
async function logIndexes(resource: Resource, log: Log): Promise<readonly Index[]> {
  try {
    const indexes = await indexesOf(resource, AbortSignal.timeout(LOOK_MS));
    log.info(
      {
        resource: resource.name,
        queries: askableOf(indexes).map(({ filters, sort }) => `${filters.join(', ')}|${sort ?? 'one row'}`),
        refused: indexes.flatMap(({ name, refused }) =>
          refused === undefined ? [] : [`${name}: ${refused}`],
        ),
        missing: withoutSuffix(indexes).map(({ fields }) => resource.indexLine(fields)),
      },
      `serving /${resource.name}`,
    );
    return indexes;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    log.warn({ resource: resource.name, reason: error.message }, `/${resource.name} is not available yet`);
    return [];
  }
}

/** How long the start waits for the indexes of a collection. Milliseconds. */
const LOOK_MS = 10_000;
