/**
 * Loaded by `--import` into the built program: appends each statement of the embedded store, and the steps of its plan, to the
 * file STATEMENTS as a line of JSON. Numbers in names of tables, columns and indexes become N.
 */
import { appendFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { DatabaseSync } from '@photostructure/sqlite';

const { prepare, exec } = DatabaseSync.prototype;
const { postMessage } = Worker.prototype;
const seen = new Set();
let last = null;

function note(connection, sql) {
  last = connection;
  // A text that makes tables may need them.
  if (!/\bcreate table\b/.test(sql)) for (const one of sql.split(';')) noteOne(connection, one.trim());
}

function noteOne(connection, sql) {
  if (!/^(select|insert|update|delete|with)\b/.test(sql)) return;
  const name = sql
    .replace(/\b[sl]\d+\b/g, (table) => `${table[0]}N`)
    .replace(/\b(i\d+|[kd])_\d+\b/g, (index) => (index[0] === 'i' ? 'iN_N' : `${index[0]}_N`))
    .replace(/\bi\d+\b/g, 'iN')
    .replace(/(,iN(?: = \?)?)+/g, ',iN...')
    .replace(/(,\?)+/g, ',?...')
    .replace(/where name = '[^']*'/, 'where name = ?');
  if (seen.has(name)) return;
  seen.add(name);
  const steps = prepare
    .call(connection, `explain query plan ${sql}`)
    .all()
    .map(({ detail }) => detail);
  appendFileSync(process.env.STATEMENTS, `${JSON.stringify([name, steps])}\n`);
}

/** The methods of its prototype cannot be replaced, but the prototype can. */
const noted = (method) => ({
  value(sql, ...rest) {
    note(this, sql);
    return method.call(this, sql, ...rest);
  },
});
DatabaseSync.prototype = Object.create(DatabaseSync.prototype, {
  prepare: noted(prepare),
  exec: noted(exec),
});
/** Statements that the thread for long ones runs. */
Worker.prototype.postMessage = function (sql, ...rest) {
  if (last && typeof sql === 'string') note(last, sql);
  return postMessage.call(this, sql, ...rest);
};
