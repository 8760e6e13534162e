import type { Commits } from '../commits.ts';
import type { ChangeNotes } from '../feed/log.ts';
import { fieldsOf } from '../fields.ts';
import { KEY } from '../../bookmark.ts';
import type { Key, Value } from '../../keys.ts';
import { IF_NEW, NO_VALUE, type Tables } from '../tables.ts';
import type { InsertResult, OnConflict } from '../../store.ts';
import { countBytes, TRANSACTION_BYTES, TRANSACTION_ROWS, type LoadGate } from '../write.ts';
import { keyRow, rowsPrefix, type KeyedRow } from './keyed.ts';
import type { IndexRecord, ResourceRecord, Resources } from './record.ts';

/** Why a row is refused whose id exists. */
export const CONFLICT = 'a row with its _id exists';

/** Writes the rows of a resource, with their index entries and their number, in bounded transactions. */
export class ResourceWriter {
  readonly #tables: Tables;
  readonly #resources: Resources;
  readonly #collection: string;
  readonly #commits: Pick<Commits, 'run'>;
  readonly #gate: LoadGate;
  readonly #log: ChangeNotes;
  readonly #transactionRows: number;

  constructor(
    tables: Tables,
    resources: Resources,
    collection: string,
    commits: Pick<Commits, 'run'>,
    gate: LoadGate,
    log: ChangeNotes,
    transactionRows = TRANSACTION_ROWS,
  ) {
    this.#tables = tables;
    this.#resources = resources;
    this.#collection = collection;
    this.#commits = commits;
    this.#gate = gate;
    this.#log = log;
    this.#transactionRows = transactionRows;
  }

  /** See ItemStore.insert. */
  async insert(documents: readonly Uint8Array[], onConflict: OnConflict): Promise<InsertResult> {
    const result = { written: 0, skipped: 0, refused: [] as { index: number; reason: string }[] };
    for (let at = 0; at < documents.length;) {
      const chunk = this.#chunkAt(documents, at);
      const outcomes = await this.#commits.run(() =>
        this.#gate.isUnderWay ? null : this.#writeAll(chunk, onConflict),
      );
      if (outcomes === null) {
        await this.#gate.untilFree();
        continue;
      }
      for (const [n, outcome] of outcomes.entries()) {
        if (outcome === 'written') result.written++;
        else if (outcome === 'skipped') result.skipped++;
        else result.refused.push({ index: at + n, reason: outcome.refused });
      }
      at += chunk.length;
    }
    return result;
  }

  #chunkAt(documents: readonly Uint8Array[], at: number): readonly Uint8Array[] {
    let end = at;
    for (let bytes = 0; end < documents.length && end - at < this.#transactionRows; end++) {
      if (bytes >= TRANSACTION_BYTES) break;
      bytes += documents[end]?.length ?? 0;
    }
    return documents.slice(at, end);
  }

  /** In a transaction. The record is read in it, because another process may have added an index. */
  #writeAll(documents: readonly Uint8Array[], onConflict: OnConflict): Outcome[] {
    let record = recordOf(this.#resources, this.#collection);
    const changes = this.#log.begin(record.number);
    let added = 0;
    const outcomes = documents.map((document): Outcome => {
      const row = keyRow(document, record);
      if (typeof row === 'string') return { refused: row };
      const before = this.#put(row, onConflict);
      if (before === 'skipped') return 'skipped';
      if (before === 'refused') return { refused: CONFLICT };
      if (before === 'added') {
        added++;
        changes.addNew(row.id);
      } else {
        const idBefore = this.#unlink(before, row, record);
        changes.addReplaced(row.id, idBefore, { before, after: row.document });
      }
      for (const entry of row.entries) if (entry) this.#tables.entries.putSync(entry, NO_VALUE);
      if (row.spoils.length > 0) record = spoil(this.#resources, record, row.spoils);
      return 'written';
    });
    if (added > 0) setCount(this.#tables, record, countOf(this.#tables, record) + added);
    changes.end(() => countOf(this.#tables, record));
    return outcomes;
  }

  /** Writes a row. The document that it replaces, or what happened else. */
  #put(row: KeyedRow, onConflict: OnConflict): Uint8Array | 'added' | 'skipped' | 'refused' {
    const { rows } = this.#tables;
    if (rows.putSync(row.key, row.document, IF_NEW)) return 'added';
    if (onConflict === 'skip') return 'skipped';
    if (onConflict === 'fail') return 'refused';
    const before = rows.getBinary(row.key);
    if (!before) throw new Error('a row that exists cannot be read');
    const document = Uint8Array.from(before);
    rows.putSync(row.key, row.document);
    return document;
  }

  /**
   * Removes the entries that a replaced row had. Those of an index in building may not be there yet. Returns the value of
   * its `_id`.
   */
  #unlink(document: Uint8Array, row: KeyedRow, record: ResourceRecord): Value {
    const before = keyRow(document, record);
    if (typeof before === 'string') return idOf(document); // it was too long for an index that came later, which is unusable
    for (const [at, entry] of before.entries.entries()) {
      const now = row.entries[at];
      if (entry && !(now && Buffer.compare(entry, now) === 0)) this.#tables.entries.removeSync(entry);
    }
    return before.id;
  }
}

type Outcome = 'written' | 'skipped' | { readonly refused: string };

/** The value of the `_id` of a stored row. */
export function idOf(document: Uint8Array): Value {
  const fields = fieldsOf(document, [KEY]);
  const id = typeof fields === 'string' ? undefined : fields[0];
  if (!id) throw new Error('a stored row has no _id');
  return id;
}

/** The record of a collection that was opened, and so exists. */
export function recordOf(resources: Resources, collection: string): ResourceRecord {
  const record = resources.record(collection);
  if (!record) throw new Error(`the embedded store has no collection ${collection}`);
  return record;
}

/** In a transaction: marks indexes as unusable, for good. */
export function spoil(
  resources: Resources,
  record: ResourceRecord,
  spoils: KeyedRow['spoils'],
): ResourceRecord {
  const changed = spoiltBy(record, spoils);
  resources.put(changed);
  return changed;
}

/** The record with these indexes unusable. The first reason stays. */
export function spoiltBy(record: ResourceRecord, spoils: KeyedRow['spoils']): ResourceRecord {
  const reasons = new Map(spoils.map(({ index, reason }) => [index, reason]));
  const indexes = record.indexes.map((index, at): IndexRecord => {
    const reason = reasons.get(at);
    return reason === undefined || index.spoilt !== undefined ? index : { ...index, spoilt: reason };
  });
  return { ...record, indexes };
}

/** The number of rows of a resource, as counted by the transactions that wrote them. */
export function countOf({ meta }: Pick<Tables, 'meta'>, record: ResourceRecord): number {
  const bytes = meta.getBinary(countKey(record));
  return bytes ? new DataView(bytes.buffer, bytes.byteOffset).getFloat64(0) : 0;
}

/** In a transaction. */
export function setCount(tables: Pick<Tables, 'meta'>, record: ResourceRecord, rows: number): void {
  tables.meta.putSync(countKey(record), countBytes(rows));
}

export function countKey(record: ResourceRecord): Key {
  return Buffer.concat([Buffer.from('rows '), rowsPrefix(record)]);
}
