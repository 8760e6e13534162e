import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { ObjectStore } from '../../../../src/store/objects.ts';
import type { DeltaReaders } from '../delta/readers.ts';
import type { SeenEdition } from './edition-watch.ts';

/** The columns of the rows that writers of a history write. */
const TYPES = { id: 'string', n: 'long', text: 'string' };
/** How long a version may come behind the head of its edition. Milliseconds. */
const COMMITTED_MS = 60_000;

/** Asserts that deltalake reads the rows of editions as the versions of their numbers, out of a folder that it is copied into. */
export async function assertVersions(
  readers: DeltaReaders,
  objects: ObjectStore,
  folder: string,
  editions: readonly SeenEdition[],
): Promise<void> {
  const resource = 'orders';
  for (const { head } of editions) {
    const path = `${resource}/_delta_log/${String(head.sequence).padStart(20, '0')}.json`;
    const end = performance.now() + COMMITTED_MS;
    while (!(await objects.get(path))) {
      assert.ok(performance.now() < end, `there is no ${path}`);
      await pause(50);
    }
  }
  for await (const { path } of objects.list(`${resource}/`)) {
    if (!/parquet$|_delta_log/.test(path)) continue;
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), (await objects.get(path)) ?? '');
  }
  for (const { head, rows } of editions) {
    const file = join(folder, 'rows.ndjson');
    await writeFile(file, [...rows.values()].map((line) => `${line}\n`).join(''));
    const asked = { uri: join(folder, resource), options: {}, types: TYPES, rows: file };
    const answer = await readers.read({ ...asked, version: head.sequence, readers: ['deltalake'] });
    assert.deepEqual(answer, { found: { deltalake: rows.size } }, `version ${head.sequence}`);
  }
}
