/**
 * The thread that runs long statements on the store's file: checkpoints, new indexes, removals of whole tables, checks. It is
 * JavaScript, because a thread of a program that runs from its sources has no loader of TypeScript.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { DatabaseSync } from '@photostructure/sqlite';

const db = new DatabaseSync(workerData.path);
// A statement here may wait for other processes: it does not hold the event loop.
db.exec('pragma busy_timeout=2000; pragma synchronous=normal; pragma wal_autocheckpoint=0');
// The sort of an index takes as much memory as the cache. 64 MiB of it were a third of what an import needs.
db.exec(`pragma journal_size_limit=${64 * 1024 * 1024}; pragma cache_size=-16384`);
db.exec(`pragma temp_store_directory='${workerData.directory.replaceAll("'", "''")}'`);

parentPort.on('message', (asked) => {
  if (asked === null) {
    db.close();
    parentPort.close();
    return;
  }
  try {
    const { sql, values } = asked;
    // Only `exec` runs several statements.
    if (values) parentPort.postMessage({ rows: db.prepare(sql).all(...values) });
    else parentPort.postMessage({ rows: [], done: db.exec(sql) });
  } catch (error) {
    if (db.isTransaction) db.exec('rollback');
    const { message, errcode } = error;
    parentPort.postMessage({ failure: errcode === undefined ? { message } : { message, errcode } });
  }
});
