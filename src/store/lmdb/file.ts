import { open, type RootDatabase } from 'lmdb';
import { reasonOf } from '../../thrown.ts';
import { Tables, type Database } from './tables.ts';

/** An open file: an environment of lmdb. */
export type LmdbFile = RootDatabase;

/** Address space to reserve: neither memory nor disk. Only a larger file makes lmdb map it again when needed. */
const MAP_BYTES = 64 * 2 ** 30;
const HAS_SPARE_ADDRESSES = process.platform !== 'win32' && !['arm', 'ia32'].includes(process.arch);
/** One for each process and thread that reads at a time. The default of 126 is less than WORKERS may need. */
const MOST_READERS = 512;

/** Opens a file of the embedded store, and creates it when there is none. Throws an Error that says what is wrong. */
export function openFile(path: string): LmdbFile {
  try {
    return open({
      path,
      noSubdir: true,
      encoding: 'binary',
      keyEncoding: 'binary',
      // Windows and 32-bit systems have no address space to spare: there lmdb grows its map step by step.
      ...(HAS_SPARE_ADDRESSES && { mapSize: MAP_BYTES }),
      // Transactions are explicit here. With this option, a failed commit also rejects a promise that no code can
      // reach.
      eventTurnBatching: false,
      // With this option, LMDB holds a second lock during a sync. When its owner is killed, the next owner may take
      // its own transaction for the dead one's, and its environment is lost (`mdb_mutex_failed`). Each commit is
      // awaited here, so none overlap.
      overlappingSync: false,
      maxReaders: MOST_READERS,
      maxDbs: 16,
    });
  } catch (error) {
    throw new Error(`${path} cannot be opened as the embedded store: ${reasonOf(error)}`, { cause: error });
  }
}

/** The databases of a file. Those that are missing are created. */
export function tablesOf(file: LmdbFile): Tables {
  return new Tables((name, shape) => file.openDB({ name, ...shape }) as unknown as Database);
}
