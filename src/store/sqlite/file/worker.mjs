/**
 * The thread that runs long statements on the store's file: checkpoints, new indexes, removals of whole tables, checks, the
 * rows of loads. It is JavaScript, because a thread of a program that runs from its sources has no loader of TypeScript.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { DatabaseSync } from '@photostructure/sqlite';

/** A statement of this many rows takes two thirds of the time of as many statements. More of them gain nothing. */
const ROWS_AT_ONCE = 16;
/** What a transaction changes beyond the cache is written into the log before it ends, and perhaps again. */
const CACHE_KIBIBYTES = 16 * 1024;
/**
 * An index is sorted in runs as large as the cache, each in a second thread while the next one is read. Runs that a processor's
 * cache can hold take half of the time that larger ones take.
 */
const SORT_KIBIBYTES = 2 * 1024;

const db = new DatabaseSync(workerData.path);
// A statement here may wait for other processes: it does not hold the event loop.
db.exec('pragma busy_timeout=2000; pragma synchronous=normal; pragma wal_autocheckpoint=0');
db.exec(
  `pragma journal_size_limit=${64 * 1024 * 1024}; pragma cache_size=-${CACHE_KIBIBYTES}; pragma threads=1`,
);
db.exec(`pragma temp_store_directory='${workerData.directory.replaceAll("'", "''")}'`);

parentPort.on('message', (asked) => {
  if (asked === null) {
    db.close();
    parentPort.close();
    return;
  }
  try {
    parentPort.postMessage(answerTo(asked));
  } catch (error) {
    if (db.isTransaction) db.exec('rollback');
    const { message, errcode } = error;
    parentPort.postMessage({ failure: errcode === undefined ? { message } : { message, errcode } });
  }
});

function answerTo({ sql, values, rows, isIndex }) {
  if (rows) insert(sql, rows);
  else if (isIndex) makeIndex(sql);
  else if (values) return { rows: db.prepare(sql).all(...values) };
  else db.exec(sql); // only `exec` runs several statements
  return {};
}

function makeIndex(sql) {
  db.exec(`pragma cache_size=-${SORT_KIBIBYTES}`);
  try {
    db.exec(sql);
  } finally {
    db.exec(`pragma cache_size=-${CACHE_KIBIBYTES}`);
  }
}

/** Inserts packed rows (see PackedRows) in one transaction. `sql`: the statement up to the values. */
function insert(sql, { numbers, keys, keyEnds, documents, documentEnds }) {
  const width = keyEnds.length / numbers.length;
  const row = `(${Array(width + 2)
    .fill('?')
    .join()})`;
  const sqlOf = (rows) => `${sql} values ${Array(rows).fill(row).join()}`;
  let keyFrom = 0;
  let documentFrom = 0;
  const valuesOf = (from, to) => {
    const values = [];
    for (let at = from; at < to; at++) {
      values.push(numbers[at]);
      for (let key = at * width; key < (at + 1) * width; key++) {
        const end = keyEnds[key];
        values.push(end > keyFrom ? keys.subarray(keyFrom, end) : null);
        keyFrom = end;
        if (key > at * width) continue;
        values.push(documents.subarray(documentFrom, documentEnds[at]));
        documentFrom = documentEnds[at];
      }
    }
    return values;
  };
  db.exec('begin immediate');
  let at = 0;
  const many = db.prepare(sqlOf(ROWS_AT_ONCE));
  for (; at + ROWS_AT_ONCE <= numbers.length; at += ROWS_AT_ONCE)
    many.run(...valuesOf(at, at + ROWS_AT_ONCE));
  const one = db.prepare(sqlOf(1));
  for (; at < numbers.length; at++) one.run(...valuesOf(at, at + 1));
  db.exec('commit');
}
