import { join } from 'node:path';
import type { StoreSettings } from '../server/open-store.ts';
import { readArguments, UsageError } from '../terminal/arguments.ts';
import { startProgress } from '../terminal/progress.ts';
import { counted } from '../terminal/text.ts';

export const BACKUP_HELP = `Usage: sluice backup FILE [--replace]

Copies the embedded store in DATA_DIR to FILE, as it is at one moment. Servers and imports may run meanwhile. FILE gets its
name when it is whole and on the disk. The files of exports are not in it.

To restore it, stop all processes, remove sluice.db-wal and sluice.db-shm from DATA_DIR, put FILE in the place of sluice.db,
and start the server. Cursors from before then get 410.

  --replace      replace FILE when it exists
  --help         show this text

Exit codes: 0 FILE is whole, 1 nothing was written, 2 the command is wrong.
`;

export const CHECK_HELP = `Usage: sluice check [FILE]

Checks the embedded store in DATA_DIR, or a backup: the pages of its file, the checksum of each row, its key and its entries in
the indexes, and the counters of rows. It reads one state of the store, and servers may run meanwhile. It prints a line for
each set of rows and for each fault.

Exit codes: 0 no fault, 1 a fault or no store, 2 the command is wrong.
`;

type Settings = Pick<StoreSettings, 'MONGODB_URI' | 'DATA_DIR'>;
type Output = Pick<NodeJS.Process, 'stdout' | 'stderr'> & { readonly signal: AbortSignal };

/** Runs `sluice backup`. Throws UsageError, or an Error that says what is wrong. */
export async function backUpStore(
  argv: readonly string[],
  settings: Settings,
  { stdout, stderr, signal }: Output,
): Promise<0> {
  const { values, positionals } = readArguments(argv, { replace: { type: 'boolean' } });
  const [to, other] = positionals;
  if (to === undefined || other !== undefined) throw new UsageError('expected: sluice backup FILE');
  const { backUp } = await import('../store/sqlite/file/backup.ts');
  const from = await fileOf('backup', settings);
  const progress = startProgress({ stderr, isTTY: stderr.isTTY }, 1);
  const onPages = (copied: number, all: number) => progress.update(copied / all, `${counted(copied)} pages`);
  const copying = backUp({ from, to, replaces: values.replace === true, onPages, signal });
  stdout.write(`${to} has ${counted(await copying.finally(progress.stop))} bytes\n`);
  return 0;
}

/** Runs `sluice check`. Resolves with the exit code. Throws as `backUpStore` does. */
export async function checkStore(
  argv: readonly string[],
  settings: Settings,
  { stdout }: Pick<Output, 'stdout'>,
): Promise<0 | 1> {
  const [file, other] = readArguments(argv, {}).positionals;
  if (other !== undefined) throw new UsageError('expected: sluice check, or sluice check FILE');
  const path = file ?? (await fileOf('check', settings));
  const { check } = await import('../store/sqlite/file/check.ts');
  const faults = await check(path, (line) => stdout.write(`${line}\n`));
  stdout.write(`${path} ${faults === 0 ? 'is whole' : `has ${counted(faults)} faults: restore a backup`}\n`);
  return faults === 0 ? 0 : 1;
}

async function fileOf(command: string, { MONGODB_URI, DATA_DIR }: Settings): Promise<string> {
  if (MONGODB_URI !== undefined)
    throw new UsageError(`${command} is for the embedded store, and MONGODB_URI is set`);
  const { FILE } = await import('../store/sqlite/file/file.ts');
  return join(DATA_DIR, FILE);
}
