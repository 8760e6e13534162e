import { reasonOf } from '../../../thrown.ts';
import type { Commits } from '../commits.ts';
import type { FairScheduler } from '../fair-scheduler.ts';
import { joinKeys, type Key } from '../keys.ts';
import { LmdbReader } from '../read.ts';
import type { Tables } from '../tables.ts';
import { fieldsOf } from '../fields.ts';
import { keyOfAny } from '../value-keys.ts';
import { KEY, type Bookmark } from '../../bookmark.ts';
import type { Slots } from '../../slots.ts';
import type { Collection, Declaration, Found } from '../../store.ts';
import { buildIndexes, isBuilding } from './build.ts';
import { Loads } from '../load/loads.ts';
import { LoadMark } from '../load/mark.ts';
import { lmdbCollection } from './collection.ts';
import { rowsPrefix } from './keyed.ts';
import { resourceTarget } from './load-target.ts';
import { LONGEST_KEY } from './longest-key.ts';
import { rangesOf } from './range.ts';
import { nameOf, Resources, type IndexRecord, type ResourceRecord } from './record.ts';
import { ResourceWalker } from './walk.ts';
import { ResourceWriter, countOf, recordOf } from './write.ts';

export interface LmdbResourcesOptions {
  readonly tables: Tables;
  readonly commits: Commits;
  readonly slots: Slots;
  readonly scheduler: FairScheduler;
  /** Rows per transaction, 512 by default. */
  readonly transactionRows?: number | undefined;
  /** For temporary files of loads. */
  readonly directory: string;
  /** Called before each look at the file. Throws when it cannot be read. */
  readonly begin: () => void;
  readonly now: () => number;
  /** Told in a sentence what went wrong while nobody waited for it. */
  readonly onWarning: (message: string) => void;
}

/** The resources of the embedded store, whose declarations it keeps itself. */
export class LmdbResources {
  readonly #options: LmdbResourcesOptions;
  readonly #resources: Resources;
  readonly #builds = new Set<Promise<void>>();
  #isOpen = true;

  constructor(options: LmdbResourcesOptions) {
    this.#options = options;
    this.#resources = new Resources(options.tables.meta);
  }

  /** See Store.open. Makes the collection and the indexes that are missing. Those of a full one are built meanwhile. */
  async open(declaration: Declaration): Promise<Collection> {
    const { collection } = declaration;
    const { tables, commits, slots, scheduler, begin, now, transactionRows } = this.#options;
    begin();
    const loads = this.#loadsOf(collection);
    await this.#declare(declaration, loads);
    if (!(await loads.recover())) loads.watch();
    this.#build(collection);
    const record = (): ResourceRecord => {
      begin();
      return recordOf(this.#resources, collection);
    };
    const prefix = rowsPrefix(record());
    const reader = new LmdbReader(
      ...([tables, 'rows', slots, scheduler] as const),
      () => {
        begin();
        loads.assertWhole();
      },
      {
        walker: new ResourceWalker(tables, () => prefix),
        rangesOf: (plan, after) => rangesOf(record(), plan, after),
        keyOfId: (id) => keyOfRow(prefix, id),
      },
    );
    const writer = new ResourceWriter(tables, this.#resources, collection, commits, loads, transactionRows);
    const rows = (): number => {
      loads.assertWhole();
      return countOf(tables, record());
    };
    return lmdbCollection({ record, rows, reader, writer, loads, now });
  }

  /** See Store.list. */
  list(): readonly Found[] {
    this.#options.begin();
    return this.#resources.names().map((collection) => ({ database: '', collection }));
  }

  /** See Store.declared. */
  declared(): readonly Declaration[] {
    this.#options.begin();
    return this.#resources.names().map((name) => {
      const record = recordOf(this.#resources, name);
      return {
        name: record.name,
        collection: name,
        indexes: record.indexes.map(({ paths }) => paths),
      };
    });
  }

  /** Resolves when nothing is being built. What is unfinished goes on when its collection is opened again. */
  async close(): Promise<void> {
    this.#isOpen = false;
    await Promise.all(this.#builds);
  }

  #loadsOf(collection: string): Loads {
    const { tables, commits, begin, directory } = this.#options;
    const target = resourceTarget(tables, this.#resources, collection);
    const mark = new LoadMark(tables.meta, `resource ${collection}`);
    return new Loads({ target, mark, commits, directory, begin });
  }

  /** Stores what the declaration has and the file lacks. An index that is missing waits for the end of a load. */
  async #declare(declaration: Declaration, loads: Loads): Promise<void> {
    while (missingIndexes(this.#resources.record(declaration.collection), declaration)?.length !== 0) {
      await loads.untilFree();
      await this.#options.commits.run(() => !loads.isUnderWay && this.#store(declaration));
      this.#options.begin();
    }
  }

  /** In a transaction. */
  #store(declaration: Declaration): void {
    const before = this.#resources.record(declaration.collection);
    const missing = missingIndexes(before, declaration);
    if (missing?.length === 0) return;
    const record = before ?? newRecord(declaration, this.#resources.names().length + 1);
    const isEmpty = countOf(this.#options.tables, record) === 0;
    const highest = Math.max(0, ...record.indexes.map(({ number }) => number));
    const added = (missing ?? declaration.indexes).map((paths, n): IndexRecord => {
      const builtTo = isEmpty ? null : Buffer.from(rowsPrefix(record)).toString('hex');
      return { number: highest + 1 + n, paths, builtTo };
    });
    this.#resources.put({ ...record, indexes: [...record.indexes, ...added] });
  }

  #build(collection: string): void {
    if (!isBuilding(recordOf(this.#resources, collection))) return; // a start needs no transaction for it
    const { tables, commits, onWarning } = this.#options;
    const build = buildIndexes(tables, this.#resources, collection, commits, () => this.#isOpen)
      .catch((error: unknown) =>
        onWarning(
          `the indexes of ${collection} are not whole: ${reasonOf(error)}; the next start goes on building them`,
        ),
      )
      .finally(() => this.#builds.delete(build));
    this.#builds.add(build);
  }
}

/** The declared indexes that a record lacks. Null when there is no record. */
function missingIndexes(
  record: ResourceRecord | null,
  { indexes }: Declaration,
): readonly (readonly string[])[] | null {
  const known = new Set(record?.indexes.map(({ paths }) => nameOf(paths)));
  const missing = indexes.filter((paths, n) => {
    const name = nameOf(paths);
    return !known.has(name) && indexes.findIndex((other) => nameOf(other) === name) === n;
  });
  return record ? missing : null;
}

function newRecord({ name, collection }: Declaration, number: number): ResourceRecord {
  return { number, name, collection, indexes: [] };
}

/** The key of the row with an id. Null when no row can have it. */
function keyOfRow(prefix: Key, id: Bookmark): Key | null {
  const values = fieldsOf(id, [KEY]);
  if (typeof values === 'string' || !values[0]) return null;
  const key = joinKeys(prefix, keyOfAny(values[0]));
  return key.length > LONGEST_KEY ? null : key;
}
