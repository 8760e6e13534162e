/** SQLite for the pull that is one file: the library that Node itself has. */
import process from 'node:process';
import { Refusal } from '../../src/pull/retry.ts';

const sqlite = withoutWarning(
  () => process.getBuiltinModule('node:sqlite') as typeof import('../../src/base/sqlite.ts') | undefined,
);
if (!sqlite || !('isTransaction' in new sqlite.DatabaseSync(':memory:')))
  throw new Refusal(
    `--into needs the SQLite of Node.js 22.16 or newer, and this is ${process.version}. Use -o FILE, or the command sluice pull of the package`,
  );

export const { backup, DatabaseSync } = sqlite;

/** Node warns that its SQLite is experimental, which a user of the pull can do nothing about. */
function withoutWarning<T>(load: () => T): T {
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => undefined;
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}
