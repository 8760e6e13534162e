import { readFile, stat } from 'node:fs/promises';
import { unlessMissing } from './directory.ts';

/** The bytes of `-shm` that readers lock: SQLite's read marks (wal.c, WAL_READ_LOCK). */
const [FIRST_MARK, LAST_MARK] = [123, 127];

/**
 * Other processes whose reads keep the write-ahead log from beginning anew. Empty except on Linux, which lists locks.
 */
export async function readersOf(path: string): Promise<readonly number[]> {
  const index = await unlessMissing(stat(`${path}-shm`));
  const locks = await unlessMissing(readFile('/proc/locks', 'utf8'));
  const held = (locks ?? '').split('\n').flatMap((line) => {
    // 1: POSIX  ADVISORY  READ 1234 fd:01:5678 124 124
    const [, , , , pid, place = '', from, to] = line.split(/\s+/);
    const isMark = Number(to) >= FIRST_MARK && Number(from) <= LAST_MARK;
    return isMark && Number(place.split(':').at(-1)) === index?.ino ? [Number(pid)] : [];
  });
  return [...new Set(held)].filter((pid) => pid !== process.pid);
}
