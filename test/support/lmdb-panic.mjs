/**
 * Loaded before a program (node --import): while the file $LMDB_PANIC is there, LMDB cannot begin a write transaction, as after
 * an error that leaves it in doubt of its file. lmdb's native part then reports MDB_PANIC, and settles nothing.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import process from 'node:process';

const MDB_PANIC = -30795;
const lmdb = createRequire(import.meta.url);
const load = createRequire(lmdb.resolve('lmdb'))('node-gyp-build-optional-packages');
const addon = load(dirname(dirname(lmdb.resolve('lmdb')))); // the one that lmdb loads

addon.Env = class extends addon.Env {
  constructor(...options) {
    super(...options);
    const startWriting = super.startWriting.bind(this);
    Object.defineProperty(this, 'startWriting', {
      configurable: true,
      value: (address, report) => {
        if (!existsSync(process.env.LMDB_PANIC)) return startWriting(address, report);
        setImmediate(() => report(MDB_PANIC));
      },
    });
  }
};
