import { rowsOf } from '../../store/batch.ts';
import { bookmarkOf, KEY, type Bookmark } from '../../store/bookmark.ts';
import { fieldsOf } from '../../store/values/fields.ts';
import { compareKeys, type Key } from '../../store/values/keys.ts';
import { keyOfAny } from '../../store/values/order.ts';
import type { FilledRow, OwnedCollection } from '../../store/store.ts';
import { UsageError } from '../../terminal/arguments.ts';
import { counted, countOf } from '../../terminal/text.ts';
import { ImportStop, type ImportOptions, type ImportResult } from '../import.ts';
import { BrokenSource } from '../row.ts';
import { Spool, SpoolFolder, type SpooledRow } from './spool.ts';

/** Rows of the store that are compared at once, and rows that are written or removed at once. */
const READ = { rows: 2_000, bytes: 4 * 1024 * 1024, patient: true };
const WRITTEN_AT_ONCE = 2_000;
const PROGRESS_ROWS = 4_096;
/** A sync that removes more than this part of the rows is to be confirmed. */
const MOST_REMOVED = 1 / 10;
const NO_KEY: Key = new Uint8Array(0);

/** Why a row is refused whose key an earlier row of the file has. */
const TWICE = 'an earlier row of the file has its _id';

export interface SyncOptions extends Omit<ImportOptions, 'onConflict' | 'onRemoved' | 'isEndless' | 'open'> {
  readonly open: () => Promise<SyncedStore>;
  /** Whether more rows may be removed than MOST_REMOVED. */
  readonly isConfirmed: boolean;
  /** The number of rows that have no key of their own. */
  readonly withoutKey: () => number;
  /** Called with a line when rows stay that the file lacks. */
  readonly say: (line: string) => void;
  /** The store as its operator knows it. */
  readonly place: string;
}

/** The part of a store that a sync uses. */
interface SyncedStore extends Pick<OwnedCollection, 'fill'> {
  readonly rows?: Pick<OwnedCollection, 'read' | 'remove' | 'describe'> | undefined;
}

interface SyncResult extends ImportResult {
  readonly unchanged: number;
  readonly removed: number;
}
type Count = { -readonly [Name in keyof SyncResult]: SyncResult[Name] };

/**
 * Makes the rows of a collection those of a source: writes what differs, and removes what the source lacks. The source is
 * read to its end, and compared with all rows, before anything is written: a source that breaks changes nothing. Rows are
 * sorted by their keys for that, in files where they do not fit into memory. When rows of the source are bad, none is
 * removed. Rejects as `importRows` does, and with UsageError when it would remove many rows unconfirmed.
 */
export async function syncRows(options: SyncOptions): Promise<SyncResult> {
  const folder = new SpoolFolder();
  const count = { read: 0, written: 0, skipped: 0, failed: 0, unchanged: 0, removed: 0 };
  try {
    return await new Sync(options, folder, count).run();
  } catch (cause) {
    if (!(cause instanceof BrokenSource || options.signal.aborted || count.written + count.removed > 0))
      throw cause;
    throw new ImportStop(count, cause);
  } finally {
    await folder.remove();
  }
}

class Sync {
  readonly #options: SyncOptions;
  readonly #count: Count;
  /** The rows of the source by their keys, those that are to be written, and the keys of those that are to be removed. */
  readonly #source: Spool;
  readonly #changed: Spool;
  readonly #lacking: Spool;
  #stored = 0;
  #bad = 0;

  constructor(options: SyncOptions, folder: SpoolFolder, count: Count) {
    this.#options = options;
    this.#count = count;
    this.#source = new Spool(folder, (a, b) => compareKeys(a.key, b.key) || a.at - b.at);
    this.#changed = new Spool(folder);
    this.#lacking = new Spool(folder);
  }

  async run(): Promise<SyncResult> {
    const store = await this.#readSource();
    if (!store) return this.#count;
    if (!store.rows) throw new TypeError('the store has no rows to compare with');
    if (this.#options.withoutKey() > 0)
      throw new UsageError(
        '--sync finds rows by their keys, and rows of the file have none: --id COLUMN names the column or field',
      );
    await this.#compare(store.rows);
    const removes = this.#mayRemove();
    await store.fill(this.#batches(), {
      onConflict: 'replace',
      refuse: (at, reason) => this.#refuse(at, reason),
      onWritten: ({ written }) => {
        this.#count.written += written;
        this.#options.progress(this.#count);
      },
      onPostponed: this.#options.onPostponed,
      signal: this.#options.signal,
    });
    if (removes) await this.#remove(store.rows);
    return this.#count;
  }

  /** Reads the source to its end. Opens the store with the first row that can be written. Null: there is none. */
  async #readSource(): Promise<SyncedStore | null> {
    const { source, signal, progress, open } = this.#options;
    let store: SyncedStore | null = null;
    let first: FilledRow | undefined;
    let last: FilledRow | undefined;
    let lastProblem: { readonly at: number; readonly problem: string } | undefined;
    for await (const rows of source)
      for (const row of rows) {
        signal.throwIfAborted();
        if (++this.#count.read % PROGRESS_ROWS === 0) progress(this.#count);
        if ('problem' in row) {
          this.#bad++;
          this.#refuse(row.at, row.problem, row.of);
          lastProblem = row;
          continue;
        }
        store ??= await open();
        first ??= row;
        last = row;
        lastProblem = undefined;
        await this.#source.add({ key: keyIn(row.item), at: row.at, item: row.item });
      }
    this.#options.onEnd?.({ first, last, lastProblem });
    return store;
  }

  async #compare(rows: NonNullable<SyncedStore['rows']>): Promise<void> {
    const source = this.#distinct();
    let next = await source.next();
    for await (const document of documentsOf(rows, this.#options.signal)) {
      this.#stored++;
      const key = keyIn(document);
      while (!next.done && compareKeys(next.value.key, key) < 0) {
        await this.#changed.add(next.value);
        next = await source.next();
      }
      if (next.done || compareKeys(next.value.key, key) > 0)
        await this.#lacking.add({ key: NO_KEY, at: 0, item: bookmarkOf(document, { sort: KEY }) });
      else {
        if (Buffer.compare(next.value.item, document) === 0) this.#count.unchanged++;
        else await this.#changed.add(next.value);
        next = await source.next();
      }
    }
    for (; !next.done; next = await source.next()) await this.#changed.add(next.value);
  }

  /** The rows of the source by their keys: of each key the first. */
  async *#distinct(): AsyncGenerator<SpooledRow, void, undefined> {
    let before: Key | null = null;
    for await (const row of this.#source.rows()) {
      if (before && compareKeys(before, row.key) === 0) {
        this.#refuse(row.at, TWICE);
        continue;
      }
      before = row.key;
      yield row;
    }
  }

  /** Whether the rows that the source lacks go. Throws UsageError when they are many, and that is not confirmed. */
  #mayRemove(): boolean {
    const { size } = this.#lacking;
    if (size === 0) return false;
    const { say, place, isConfirmed } = this.#options;
    if (this.#bad > 0) {
      say(
        `${countOf(size, 'row')} that the file lacks stay: ${countOf(this.#bad, 'row')} of it cannot be read, and may be among them`,
      );
      return false;
    }
    if (isConfirmed || size <= this.#stored * MOST_REMOVED) return true;
    throw new UsageError(
      `--sync would remove ${counted(size)} of the ${countOf(this.#stored, 'row')} of ${place}, which the file lacks: confirm it with --yes`,
    );
  }

  async *#batches(): AsyncGenerator<readonly FilledRow[], void, undefined> {
    yield* inPieces(this.#changed.rows(), this.#options.signal);
  }

  async #remove(rows: Pick<OwnedCollection, 'remove'>): Promise<void> {
    for await (const some of inPieces(this.#lacking.rows(), this.#options.signal))
      this.#count.removed += await rows.remove(some.map(({ item }) => item as Bookmark));
  }

  #refuse(at: number, reason: string, of?: string): void {
    this.#count.failed++;
    this.#options.report(at, reason, of);
  }
}

function keyIn(document: Uint8Array): Key {
  const fields = fieldsOf(document, [KEY]);
  const id = typeof fields === 'string' ? undefined : fields[0];
  if (!id) throw new TypeError('a row has no key');
  return keyOfAny(id);
}

/** The rows of a collection in the order of their keys. */
async function* documentsOf(
  rows: Pick<OwnedCollection, 'read' | 'describe'>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { identity } = await rows.describe(signal);
  const plan = { sort: KEY, direction: 1, ...(identity !== undefined && { identity }) } as const;
  let after: Bookmark | null = null;
  for (let more = true; more;) {
    const batch = await rows.read(plan, after ? { after } : {}, READ, signal);
    let documents: readonly Uint8Array[];
    try {
      await batch.confirm(signal);
      documents = Array.from(rowsOf(batch), (document) => document.slice());
    } finally {
      batch.release();
    }
    yield* documents;
    ({ more } = batch);
    after = batch.last;
  }
}

async function* inPieces(
  rows: AsyncIterable<SpooledRow>,
  signal: AbortSignal,
): AsyncGenerator<readonly SpooledRow[], void, undefined> {
  let piece: SpooledRow[] = [];
  let bytes = 0;
  for await (const row of rows) {
    piece.push(row);
    bytes += row.item.length;
    if (piece.length < WRITTEN_AT_ONCE && bytes < READ.bytes) continue;
    signal.throwIfAborted();
    yield piece;
    piece = [];
    bytes = 0;
  }
  signal.throwIfAborted();
  if (piece.length > 0) yield piece;
}
