import { statfs } from 'node:fs/promises';

/** Types of file systems (statfs(2)) that keep files elsewhere, where the locks and maps of SQLite do not hold. */
const REMOTE: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xfe534d42, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0x65735546, 'FUSE or virtiofs'],
  [0x01021997, '9P'],
  [0x00c36400, 'Ceph'],
  [0x5346414f, 'AFS'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
]);

/** Those of local disks and of memory, on which a file may be mapped: ext, XFS, Btrfs, F2FS, ZFS, tmpfs, overlay. */
const LOCAL: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x2fc12fc1, 0x01021994, 0x794c7630,
]);

/** SQLite maps at most 2 GiB. */
const MMAP_BYTES = 0x7fff0000;

/**
 * How much of a file in this directory SQLite may map into memory, in bytes. Throws an Error when the file system keeps
 * files elsewhere: nothing can be served from there.
 */
export async function mmapBytesIn(directory: string): Promise<number> {
  if (process.platform !== 'linux') return 0;
  const { type } = await statfs(directory);
  const remote = REMOTE.get(type >>> 0);
  if (remote !== undefined)
    throw new Error(
      `DATA_DIR ${directory} is on a file system of the kind ${remote}: the embedded store needs a local disk`,
    );
  return LOCAL.has(type) ? MMAP_BYTES : 0;
}
