import { open, readFile } from 'node:fs/promises';
import { endianness } from 'node:os';
import { dirname } from 'node:path';
import { currentBoot } from '../../writes/holder.ts';
import { Connection } from './connection.ts';
import { sizeOf, unlessMissing } from './directory.ts';
import { faultOfLog } from './log-file.ts';
import { knowsEpoch, meta } from './layout.ts';
import { MARK_FILE, readMark, type Mark } from './mark.ts';

/** What a file of SQLite begins with, and where its header says how many pages it has (fileformat2.html). */
const MAGIC = 'SQLite format 3\0';
const HEADER_BYTES = 100;
/** The version of the file in its header while it has no write-ahead log. */
const BACKUP = 1;

/** The files that this process has open, each as often as it has. */
export const openHere: string[] = [];

/**
 * What is wrong with the file of a store and its log, as far as their outsides show, with the way on. Null: nothing, or
 * this process has the file open: to open and close it here would drop the locks that SQLite has on it.
 */
export async function faultOfFile(path: string): Promise<string | null> {
  if (openHere.includes(path)) return null;
  const file = await open(path, 'r');
  try {
    const { buffer } = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0);
    if (buffer.toString('latin1', 0, MAGIC.length) !== MAGIC) return 'it is not an SQLite file';
    const hasLog = Boolean(await sizeOf(`${path}-wal`));
    const isBackup = buffer[18] === BACKUP;
    if (hasLog && isBackup)
      return `it is a backup, but ${path}-wal is of the store that was there before: remove ${path}-wal and ${path}-shm`;
    if (!hasLog) {
      // Else the header may be ahead of the file.
      const pageBytes = buffer.readUInt16BE(16) === 1 ? 65_536 : buffer.readUInt16BE(16);
      const wanted = pageBytes * buffer.readUInt32BE(28);
      const isKnown = buffer.readUInt32BE(24) === buffer.readUInt32BE(92);
      const { size } = await file.stat(); // last: a process that has just closed the store may have moved its log into it
      if (isKnown && size < wanted)
        return `it is truncated to ${size} bytes, expected ${wanted}; restore it from a backup`;
    }
    return isBackup ? null : await lostLog(path);
  } finally {
    await file.close();
  }
}

/** Why acknowledged writes are not in the log any more. */
async function lostLog(path: string): Promise<string | null> {
  const found = await lookAtLog(path);
  // A process that opened the file or wrote meanwhile leaves something else.
  if (found === null || found !== (await lookAtLog(path))) return null;
  return `${found}: ${MARK_FILE} says that the store was not stopped in order, and what was written last is lost. Restore the log or a backup, or remove ${MARK_FILE} to go on with the rest`;
}

async function lookAtLog(path: string): Promise<string | null> {
  const log = `${path}-wal`;
  const mark = await readMark(dirname(path));
  // A log may go after a stop.
  if (mark?.writtenAt === undefined || mark.stops > mark.writtenAt) return null;
  // A loss of power takes what was not acknowledged, in any order.
  const isSameStart = Boolean(mark.boot) && mark.boot === currentBoot();
  if (await sizeOf(log)) return isSameStart ? faultOfLog(log) : null;
  // SQLite itself removes or empties a log, when it has moved all of it into the file.
  const isMoved = !(isSameStart && (await hasFramesLeft(path))) && hasWritten(path, mark);
  return isMoved ? null : `${log} is missing or empty`;
}

/** Whether the index of the log, which SQLite removes with the log, has frames that were not moved into the file. */
async function hasFramesLeft(path: string): Promise<boolean> {
  const index = await unlessMissing(readFile(`${path}-shm`));
  // walformat.html, "The WAL-Index File Format": the last frame, and how many were moved.
  if (!index || index.length < 100) return false;
  const numberAt = (at: number) => (endianness() === 'LE' ? index.readUInt32LE(at) : index.readUInt32BE(at));
  return numberAt(16) > numberAt(96);
}

/** Whether the file without its log has what was written first since the last stop, or has another number of stops. */
function hasWritten(path: string, { stops, writtenAt = 0, epoch }: Mark): boolean {
  let connection: Connection | null = null;
  try {
    connection = new Connection(path);
    const found = Number(meta(connection, 'stops'));
    if (found < stops || found > writtenAt) return true; // who opens an older one says so
    return epoch === undefined || knowsEpoch(connection, epoch);
  } catch {
    return stops > 0; // else it never had more than its log
  } finally {
    connection?.close();
  }
}
