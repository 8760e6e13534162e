import { randomBytes } from 'node:crypto';
import { EPOCH_KEY } from './feed/log-keys.ts';
import { NAMES, type Database } from './tables.ts';

/** The key of the file's own format. */
export const FORMAT_KEY = Buffer.from('format');
/**
 * The formats of a file. A new one is needed when keys or databases change their meaning. Files of earlier versions
 * have one of the first three: the third while a load filled the items, the second when a price had a Decimal128's key.
 * A program that knows only these must not write to a file with a log of changes, because the log would lack its writes.
 */
export const FORMATS = {
  first: 'sluice items 1',
  decimals: 'sluice items 2',
  loading: 'sluice items 3',
  /** All changes of rows are in the log. */
  changes: 'sluice items 4',
} as const;

/** The root database of an lmdb environment. */
interface Root {
  getKeys(options: object): Iterable<unknown>;
  openDB(options: { name: string; encoding: 'binary'; keyEncoding: 'binary' }): unknown;
  transactionSync<T>(action: () => T): T;
}

/**
 * Stamps a new file, or one of an earlier version, with the present format. Its log of changes then begins anew. Throws
 * an Error when the file belongs to another program or has an unknown format.
 */
export function checkFormat(root: Root, path: string): void {
  const names = [...root.getKeys({})].map((name) => String(name).replace(/\0$/, '')); // names are C strings
  if (names.length > 0 && !names.includes(NAMES.meta))
    throw new Error(
      `${path} is an LMDB file of another program (its databases are ${names.join(', ')}): set another DATA_DIR`,
    );
  const options = { name: NAMES.meta, encoding: 'binary', keyEncoding: 'binary' } as const;
  const meta = root.openDB(options) as Pick<Database, 'getBinary' | 'putSync'>;
  const known: readonly string[] = Object.values(FORMATS);
  const formatOf = (): string => String(meta.getBinary(FORMAT_KEY) ?? FORMATS.first);
  root.transactionSync(() => {
    const found = formatOf();
    if (found === FORMATS.changes || !known.includes(found)) return;
    meta.putSync(FORMAT_KEY, Buffer.from(FORMATS.changes));
    meta.putSync(EPOCH_KEY, randomBytes(8));
  });
  const found = formatOf();
  if (!known.includes(found))
    throw new Error(`${path} has the format "${found}", this version reads "${known.join('" and "')}"`);
}
