import { setMaxListeners } from 'node:events';
import type { Log } from '../base/log.ts';
import type { StreamedRows, StreamReader } from '../store/turns/readers.ts';
import { AmongCollection } from '../store/among/among-collection.ts';
import type { Collection, Declaration, Store } from '../store/store.ts';
import type { Slots } from '../store/turns/slots.ts';
import { AppError, collectionReplaced } from '../base/errors.ts';
import { Selection } from '../rows/selection.ts';
import { reasonOf } from '../base/error-reason.ts';
import { getOrMake } from '../base/get-or-make.ts';
import { openForm } from './query/form.ts';
import type { EditionsMember } from './declared-editions.ts';
import type { LocatedDeclaration } from './locate.ts';
import { declaredIndexes } from './own.ts';
import { askableOf, indexLine, withoutSuffix } from './query/not-indexed.ts';
import { indexesOf, type Resource } from './query/resource.ts';

export interface OpenResourcesOptions {
  readonly store: Pick<Store, 'name' | 'open' | 'list'>;
  readonly streamsOf: (rows: StreamedRows) => StreamReader;
  /** Where batches lie. */
  readonly slots: Slots;
  readonly log: Log;
}

export interface OpenResource {
  readonly resource: Resource;
  /** What its operator declares of its editions. Absent: nothing. */
  readonly editions?: EditionsMember | undefined;
  /** Whether caches may give its editions to anybody. */
  readonly isPublic?: boolean | undefined;
  /** Aborted when its followers are to end: the server stops, or the resource is no longer served. */
  readonly stopping?: AbortSignal;
}

/** A resource that may be closed again while the server runs. */
export interface ClosableResource extends OpenResource {
  /** Ends its followers, with this reason. */
  readonly stop: (reason: Error) => void;
  /** Ends its followers and cuts its streams: it is no longer served. */
  readonly close: () => void;
}

/**
 * Opens a resource and logs what can be asked of it. Resolves with a fault when the collection cannot be served. Rejects with
 * the reason when the server declares it by itself.
 */
export async function openResource(
  located: LocatedDeclaration,
  { store, streamsOf, slots, log }: OpenResourcesOptions,
): Promise<ClosableResource | string> {
  const { name, place, isThere, own, editions, public: isPublic } = located;
  try {
    const rows = await store.open(own?.declaration ?? declarationOf(located));
    const stopping = new AbortController();
    setMaxListeners(0, stopping.signal); // one for each follower
    let isClosed = false;
    const ended = (of: StreamedRows) => endedBy(() => isClosed, streamsOf(of));
    const resource = resourceOf(located, rows, { store: store.name, streamsOf: ended, slots });
    const stop = (reason: Error) => stopping.abort(reason);
    const close = () => {
      isClosed = true;
      stop(collectionReplaced());
      rows.close();
    };
    if (isThere === null) log.warn({ resource: name }, `/${name} is not available yet: the store is away`);
    else if (!own) await logIndexes(resource, log);
    return { resource, editions, isPublic, stopping: stopping.signal, stop, close };
  } catch (error) {
    if (error instanceof AppError || own) throw error;
    return `${place}: ${reasonOf(error)}`;
  }
}

interface ResourceParts extends Pick<OpenResourcesOptions, 'streamsOf' | 'slots'> {
  readonly store: Store['name'];
}

/** The resource of these rows, in a store of a name. Throws an error for the operator. */
export function resourceOf(
  { name, database, collection, hide, show, fields = {}, aliases, ownDatabase, own }: LocatedDeclaration,
  rows: Collection,
  { store, streamsOf, slots }: ResourceParts,
): Resource {
  return {
    name,
    rows: new AmongCollection(rows, slots),
    form: own?.form ?? openForm(name, aliases),
    ...(own?.idType && { idType: own.idType }),
    declared: own ? declaredIndexes(own.declaration) : [],
    streamsOf: onceForEach(streamsOf),
    shown: new Selection({ hide, show }),
    kinds: own?.kinds ?? new Map(Object.entries(fields)),
    indexLine: indexLine(store === 'sqlite', name, database ?? ownDatabase, collection),
  };
}

function declarationOf({ name, database, collection, indexes = [] }: LocatedDeclaration): Declaration {
  const declaration = { name, collection, indexes };
  return database === undefined ? declaration : { ...declaration, database };
}

/** Keeps the reader of each part, of which there may be many: few of them stream. */
function onceForEach(streamsOf: OpenResourcesOptions['streamsOf']): Resource['streamsOf'] {
  const readers = new WeakMap<StreamedRows, StreamReader>();
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
