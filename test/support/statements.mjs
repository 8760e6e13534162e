/**
 * Loaded by `--import` into the built program: appends each statement of the embedded store, and the steps of its plan, to the
 * file STATEMENTS as a line of JSON. Numbers in names of tables, columns and indexes become N.
 */
import { appendFileSync } from 'node:fs';
import { Connection } from '../../dist/store/sqlite/connection.js';
import { Maintenance } from '../../dist/store/sqlite/maintenance.js';

const original = {
  ...methodsOf(Connection.prototype, ['get', 'all', 'run', 'exec']),
  maintain: Maintenance.prototype.run,
};
const seen = new Set();
let last = null;

function methodsOf(prototype, names) {
  return Object.fromEntries(names.map((name) => [name, prototype[name]]));
}

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
  const steps = original.all.call(connection, `explain query plan ${sql}`).map(({ detail }) => detail);
  appendFileSync(process.env.STATEMENTS, `${JSON.stringify([name, steps])}\n`);
}

for (const name of ['get', 'all', 'run', 'exec'])
  Connection.prototype[name] = function (sql, ...values) {
    note(this, sql);
    return original[name].call(this, sql, ...values);
  };
Maintenance.prototype.run = function (sql) {
  if (last) note(last, sql);
  return original.maintain.call(this, sql);
};
