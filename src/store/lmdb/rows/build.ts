import type { Commits } from '../commits.ts';
import { HIGHEST, joinKeys, type Key } from '../keys.ts';
import { NO_VALUE, type Tables } from '../tables.ts';
import { TRANSACTION_ROWS } from '../write.ts';
import { keyRow, rowsPrefix, type KeyedRow } from './keyed.ts';
import type { IndexRecord, ResourceRecord, Resources } from './record.ts';
import { recordOf, spoil } from './write.ts';

/**
 * Builds the indexes of a collection that were added when it had rows, in bounded transactions. Each stores how far it
 * has come. So another process goes on after a kill, and two processes share the work. Writers keep the entries of all
 * rows meanwhile. Resolves when no index is in building, or when `isOpen` returns false.
 */
export async function buildIndexes(
  tables: Tables,
  resources: Resources,
  collection: string,
  commits: Pick<Commits, 'run'>,
  isOpen: () => boolean,
): Promise<void> {
  while (isOpen() && (await commits.run(() => buildNext(tables, resources, collection))));
}

/** In a transaction: adds the entries of the next rows to the first index in building. False when there is none. */
function buildNext(tables: Tables, resources: Resources, collection: string): boolean {
  const record = recordOf(resources, collection);
  const at = record.indexes.findIndex(isUnfinished);
  const index = record.indexes[at];
  const from = index?.builtTo ?? null;
  if (!index || from === null) return false;
  const start = Buffer.from(from, 'hex');
  const keys = nextKeys(tables, start, joinKeys(rowsPrefix(record), HIGHEST));
  const alone = { ...record, indexes: [index] };
  for (const key of keys) {
    const document = tables.rows.getBinary(key);
    const row = document ? keyRow(Uint8Array.from(document), alone) : 'a row is missing';
    const reason = typeof row === 'string' ? `${row} in a row` : row.spoils[0]?.reason;
    if (reason !== undefined) {
      spoil(resources, record, [{ index: at, reason }]);
      return true;
    }
    for (const entry of (row as KeyedRow).entries) if (entry) tables.entries.putSync(entry, NO_VALUE);
  }
  const last = keys.length < TRANSACTION_ROWS ? undefined : keys.at(-1);
  const builtTo = last ? Buffer.from(last).toString('hex') : null;
  const indexes = record.indexes.map((one): IndexRecord => (one === index ? { ...index, builtTo } : one));
  resources.put({ ...record, indexes });
  return true;
}

/** Whether a collection has an index that is not whole yet. */
export function isBuilding({ indexes }: ResourceRecord): boolean {
  return indexes.some(isUnfinished);
}

function isUnfinished({ builtTo, spoilt }: IndexRecord): boolean {
  return builtTo !== null && spoilt === undefined;
}

function nextKeys(tables: Tables, start: Key, end: Key): Key[] {
  const keys: Key[] = [];
  tables.prefix = 0;
  const options = { start, end, reverse: false, exclusiveStart: true, offset: 0, values: false };
  const steps = tables.rows.getRange(options)[Symbol.iterator]();
  try {
    while (keys.length < TRANSACTION_ROWS && steps.next().done !== true) keys.push(tables.found.copied());
    return keys;
  } finally {
    steps.return?.();
  }
}
