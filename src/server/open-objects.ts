import { join } from 'node:path';
import { Faults } from '../base/errors.ts';
import { storedHeaders } from '../base/edition/file-headers.ts';
import type { BucketOptions } from '../store/bucket/client.ts';
import type { FilesPlace } from '../store/bucket/place.ts';
import { FolderObjects } from '../store/folder/objects.ts';
import type { ObjectStore } from '../store/objects.ts';

const FOLDER = 'editions';

/**
 * Opens the files of editions where the setting FILES puts files, or else beside the embedded store. `directory`: of that;
 * null: the rows are in MongoDB. Rejects with Faults where there is no place for them. Unlike files of exports they lie in no
 * folder of their store: the operator gives each store a place of its own, and serves it.
 */
export async function openObjects(
  place: FilesPlace | null,
  directory: string | null,
  options: BucketOptions = {},
): Promise<ObjectStore> {
  if (place?.kind === 'bucket') {
    const { BucketObjects } = await import('../store/bucket/objects.ts');
    return new BucketObjects(place, { folder: `${FOLDER}/`, headersOf: storedHeaders, ...options });
  }
  const path = place?.path ?? directory;
  if (path !== null) return new FolderObjects(join(path, FOLDER));
  throw new Faults([
    'FILES is missing: editions of rows in MongoDB need file:///FOLDER, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME',
  ]);
}
