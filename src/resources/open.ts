import { setMaxListeners } from 'node:events';
import type { Log } from '../log.ts';
import type { StreamReader } from '../store/readers.ts';
import type { Collection, Store } from '../store/store.ts';
import { AppError, collectionReplaced } from '../errors.ts';
import { EVERYTHING, Selection } from '../rows/selection.ts';
import { KEY } from '../store/bookmark.ts';
import { reasonOf } from '../error-reason.ts';
import { getOrMake } from '../get-or-make.ts';
import { openForm } from './query/form.ts';
import type { IdType } from './query/kinds.ts';
import { ITEM_COLLECTION } from './item-collection.ts';
import { ITEM_FORM, ITEM_KINDS } from './items.ts';
import type { Located } from './locate.ts';
import { askableOf, indexLine, withoutSuffix } from './query/not-indexed.ts';
import { indexesOf, type Resource } from './query/resource.ts';

export interface OpenResourcesOptions {
  readonly store: Pick<Store, 'keepsDeclarations' | 'open' | 'list' | 'declared'>;
  readonly streamsOf: (rows: Collection) => StreamReader;
  readonly log: Log;
}

export interface OpenResource {
  readonly resource: Resource;
  /** Aborted when its followers are to end: the server stops, or the resource is no longer served. */
  readonly stopping?: AbortSignal;
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
    streamsOf: onceForEach(streamsOf),
    kinds: ITEM_KINDS,
    indexLine: indexLine(keepsDeclarations, name, undefined, collection),
  };
  return { resource };
}

/** A resource that may be closed again while the server runs. */
export interface ClosableResource extends OpenResource {
  /** Ends its followers, with this reason. */
  readonly stop: (reason: Error) => void;
  /** Ends its followers and cuts its streams: it is no longer served. */
  readonly close: () => void;
}

/** Opens a resource and logs what can be asked of it. Resolves with a fault when the collection cannot be served. */
export async function openResource(
  { name, database, collection, indexes = [], hide, show, fields = {}, place, isThere, ownDatabase }: Located,
  { store, streamsOf, log }: OpenResourcesOptions,
): Promise<ClosableResource | string> {
  try {
    const shown = new Selection({ hide, show });
    const rows = await store.open({
      ...{ name, collection, indexes },
      ...(database !== undefined && { database }),
    });
    const stopping = new AbortController();
    setMaxListeners(0, stopping.signal); // one for each follower
    let isClosed = false;
    const resource: Resource = {
      name,
      rows,
      form: openForm(name),
      declared: [],
      streamsOf: onceForEach((of) => endedBy(() => isClosed, streamsOf(of))),
      shown,
      kinds: new Map(Object.entries(fields)),
      indexLine: indexLine(store.keepsDeclarations, name, database ?? ownDatabase, collection),
    };
    const stop = (reason: Error) => stopping.abort(reason);
    const close = () => {
      isClosed = true;
      stop(collectionReplaced());
      rows.close();
    };
    if (isThere === null) log.warn({ resource: name }, `/${name} is not available yet: the store is away`);
    else await logIndexes(resource, log);
    return { resource, stopping: stopping.signal, stop, close };
  } catch (error) {
    if (error instanceof AppError) throw error;
    return `${place}: ${reasonOf(error)}`;
  }
}

/** Keeps the reader of each part, of which there may be many: few of them stream. */
function onceForEach(streamsOf: OpenResourcesOptions['streamsOf']): Resource['streamsOf'] {
  const readers = new WeakMap<Collection, StreamReader>();
  return (rows) => getOrMake(readers, rows, () => streamsOf(rows));
}

/** A reader of streams that cuts them at their next batch once their resource is closed. */
function endedBy(isClosed: () => boolean, streams: StreamReader): StreamReader {
  const checked =
    (read: StreamReader['read']): StreamReader['read'] =>
    (...call) =>
      isClosed() ? Promise.reject(collectionReplaced()) : read(...call);
  return {
    ...streams,
    read: checked((...call) => streams.read(...call)),
    begin: checked((...call) => streams.begin(...call)),
  };
}

/** Logs one line: what can be asked, and what would allow more. */
async function logIndexes(resource: Resource, log: Log): Promise<void> {
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
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    log.warn({ resource: resource.name, reason: error.message }, `/${resource.name} is not available yet`);
  }
}

/** How long the start waits for the indexes of a collection. Milliseconds. */
const LOOK_MS = 10_000;
