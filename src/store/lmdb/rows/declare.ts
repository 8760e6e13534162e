import type { Declaration } from '../../store.ts';
import type { Tables } from '../tables.ts';
import { newIdentity } from './clear.ts';
import { rowsPrefix } from './keyed.ts';
import { nameOf, type IndexRecord, type ResourceRecord, type Resources } from './record.ts';
import { countOf } from './write.ts';

/** In a transaction: stores what a declaration has and the file lacks. Indexes of a full resource are to be built. */
export function storeDeclaration(tables: Tables, resources: Resources, declaration: Declaration): void {
  const before = resources.record(declaration.collection);
  const missing = missingIndexes(before, declaration);
  if (missing?.length === 0) return;
  const record = before ?? newRecord(declaration, resources.takeNumber());
  const isEmpty = countOf(tables, record) === 0;
  const highest = Math.max(0, ...record.indexes.map(({ number }) => number));
  const added = (missing ?? declaration.indexes).map((paths, n): IndexRecord => {
    const builtTo = isEmpty ? null : Buffer.from(rowsPrefix(record)).toString('hex');
    return { number: highest + 1 + n, paths, builtTo };
  });
  resources.put({ ...record, indexes: [...record.indexes, ...added] });
}

/** The declared indexes that a record lacks. Null when there is no record. */
export function missingIndexes(
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
  return { number, name, collection, identity: newIdentity(), indexes: [] };
}
