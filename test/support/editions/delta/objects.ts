import { readdir, readFile, rm, stat, writeFile, mkdir } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { Bucket } from '../../../../src/store/bucket/client.ts';
import type { BucketPlace } from '../../../../src/store/bucket/place.ts';
import { codeOf } from '../../../../src/base/error-reason.ts';
import type { LogObjects } from '../../../../src/editions/delta/log-files.ts';
import type { StoredObject } from '../../../../src/store/objects.ts';

/** Objects as files. */
export function folderObjects(folder: string): LogObjects {
  const nullIfNone = (error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  };
  return {
    async put(path, bytes, { isNew = false } = {}) {
      const file = join(folder, path);
      await mkdir(dirname(file), { recursive: true });
      try {
        await writeFile(file, bytes, { flag: isNew ? 'wx' : 'w' });
        return true;
      } catch (error) {
        if (codeOf(error) === 'EEXIST') return false;
        throw error;
      }
    },
    get: (path) => readFile(join(folder, path)).catch(nullIfNone),
    async *list(prefix): AsyncIterable<StoredObject> {
      const names = await readdir(join(folder, prefix)).catch(nullIfNone);
      for (const name of names ?? []) {
        const file = join(folder, prefix, name);
        const { size, mtimeMs } = await stat(file);
        yield { path: relative(folder, file), bytes: size, storedAt: mtimeMs };
      }
    },
    remove: (path) => rm(join(folder, path), { force: true }),
  };
}

/** Objects in a bucket. */
export function bucketObjects(bucket: Bucket, { prefix }: BucketPlace): LogObjects {
  return {
    put: (path, bytes, how) => bucket.put(prefix + path, bytes, how),
    async get(path) {
      const size = await bucket.size(prefix + path);
      if (size === null) return null;
      const parts: Buffer[] = [];
      for await (const part of await bucket.get(prefix + path, 0, size)) parts.push(part as Buffer);
      return Buffer.concat(parts);
    },
    async *list(beginning): AsyncIterable<StoredObject> {
      for await (const { key, size } of bucket.list(prefix + beginning))
        yield { path: key.slice(prefix.length), bytes: size, storedAt: 0 };
    },
    remove: (path) => bucket.remove(prefix + path),
  };
}

/** Those of a builder that dies before it stores anything. */
export function noPuts({ get, list, remove }: LogObjects): LogObjects {
  return { get, list, remove, put: () => Promise.reject(new Error('killed')) };
}
