import { join } from 'node:path';
import type { BucketOptions } from '../store/bucket/client.ts';
import type { FilesPlace } from '../store/bucket/place.ts';
import { directoryFiles } from '../store/folder/directory.ts';
import type { FileStore } from '../store/files.ts';
import type { Store } from '../store/store.ts';

/** A folder that nobody makes: nothing is written before there is an export. */
const UNKNOWN = 'unknown';

/**
 * Opens the files where the setting FILES puts them, or else those of the store. Elsewhere, several stores may have
 * their files, so they lie in a folder of `storeId`, which is null as long as the store has no exports.
 */
export async function openFiles(
  place: FilesPlace | null,
  store: Pick<Store, 'files'>,
  storeId: () => Promise<string | null>,
  options: BucketOptions = {},
): Promise<FileStore> {
  if (place === null) return store.files;
  if (place.kind === 'folder')
    return directoryFiles(async () => join(place.path, 'exports', (await storeId()) ?? UNKNOWN));
  const { BucketFiles } = await import('../store/bucket/files.ts');
  return new BucketFiles(place, { folder: storeId, ...options });
}
