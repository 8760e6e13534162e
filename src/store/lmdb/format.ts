import { NAMES, type Database } from './tables.ts';

/** The key of the file's own format. */
export const FORMAT_KEY = Buffer.from('format');
/**
 * The formats of a file. A new one is needed when keys or databases change their meaning. A file has the first format
 * until a price has a Decimal128's key, which programs that know only the first format would misread.
 */
export const FORMATS = {
  first: 'sluice items 1',
  decimals: 'sluice items 2',
  /** While a load fills the items. */
  loading: 'sluice items 3',
} as const;

/** The root database of an lmdb environment. */
interface Root {
  getKeys(options: object): Iterable<unknown>;
  openDB(options: { name: string; encoding: 'binary'; keyEncoding: 'binary' }): unknown;
  transactionSync<T>(action: () => T): T;
}

/**
 * Stamps a new file with the format. Throws an Error when the file belongs to another program or has an unknown
 * format.
 */
export function checkFormat(root: Root, path: string): void {
  const names = [...root.getKeys({})].map((name) => String(name).replace(/\0$/, '')); // names are C strings
  if (names.length > 0 && !names.includes(NAMES.meta))
    throw new Error(
      `${path} is an LMDB file of another program (its databases are ${names.join(', ')}): set another DATA_DIR`,
    );
  const options = { name: NAMES.meta, encoding: 'binary', keyEncoding: 'binary' } as const;
  const meta = root.openDB(options) as Pick<Database, 'getBinary' | 'putSync'>;
  root.transactionSync(() => {
    if (!meta.getBinary(FORMAT_KEY)) meta.putSync(FORMAT_KEY, Buffer.from(FORMATS.first));
  });
  const found = String(meta.getBinary(FORMAT_KEY));
  const known: readonly string[] = Object.values(FORMATS);
  if (!known.includes(found))
    throw new Error(`${path} has the format "${found}", this version reads "${known.join('" and "')}"`);
}
