import type { Commits } from '../commits.ts';
import { HIGHEST, joinKeys, type Key } from '../../keys.ts';
import { NO_VALUE, type Tables } from '../tables.ts';
import { TRANSACTION_ROWS } from '../write.ts';
import { keyRow, rowsPrefix, type KeyedRow } from './keyed.ts';
import { isInBuilding, type IndexRecord, type Resources } from './record.ts';
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
  { transactionRows = TRANSACTION_ROWS, onRows = () => undefined }: BuildOptions = {},
): Promise<void> {
  while (isOpen()) {
    const rows = await commits.run(() => buildNext(tables, resources, collection, transactionRows));
    if (rows === null) return;
    onRows(rows);
  }
}

export interface BuildOptions {
  /** Rows in one transaction. 500 by default: about 10 ms of the event loop. */
  readonly transactionRows?: number | undefined;
  /** Called with the number of rows of each transaction. */
  readonly onRows?: (rows: number) => void;
}

/**
 * In a transaction: adds the entries of the next rows to the first index in building. Returns the number of rows, or
 * null when there is no such index.
 */
function buildNext(tables: Tables, resources: Resources, collection: string, most: number): number | null {
  const record = recordOf(resources, collection);
  const at = record.indexes.findIndex(isInBuilding);
  const index = record.indexes[at];
  const from = index?.builtTo ?? null;
  if (!index || from === null) return null;
  const start = Buffer.from(from, 'hex');
  const keys = nextKeys(tables, start, joinKeys(rowsPrefix(record), HIGHEST), most);
  const alone = { ...record, indexes: [index] };
  for (const key of keys) {
    const document = tables.rows.getBinary(key);
    const row = document ? keyRow(Uint8Array.from(document), alone) : 'a row is missing';
    const reason = typeof row === 'string' ? `${row} in a row` : row.spoils[0]?.reason;
    if (reason !== undefined) {
      spoil(resources, record, [{ index: at, reason }]);
      return keys.length;
    }
    for (const entry of (row as KeyedRow).entries) if (entry) tables.entries.putSync(entry, NO_VALUE);
  }
  const last = keys.length < most ? undefined : keys.at(-1);
  const builtTo = last ? Buffer.from(last).toString('hex') : null;
  const indexes = record.indexes.map((one): IndexRecord => (one === index ? { ...index, builtTo } : one));
  resources.put({ ...record, indexes });
  return keys.length;
}

function nextKeys(tables: Tables, start: Key, end: Key, most: number): Key[] {
  const keys: Key[] = [];
  tables.prefix = 0;
  const options = { start, end, reverse: false, exclusiveStart: true, offset: 0, values: false };
  const steps = tables.rows.getRange(options)[Symbol.iterator]();
  try {
    while (keys.length < most && steps.next().done !== true) keys.push(tables.found.copied());
    return keys;
  } finally {
    steps.return?.();
  }
}
