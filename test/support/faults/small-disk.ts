import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/**
 * A directory on a disk of this many bytes, or with such a directory `within`. Null, and the test skipped, where none can be
 * mounted. With REQUIRE_ALL=1 that is an error.
 */
export async function smallDisk(t: TestContext, bytes: number, within = ''): Promise<string | null> {
  const path = await mkdtemp(join(tmpdir(), 'sluice-disk-'));
  const disk = join(path, within);
  await mkdir(disk, { recursive: true });
  const options = ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', disk];
  const { status, stderr, error } = spawnSync('mount', options);
  t.after(async () => {
    if (status === 0) spawnSync('umount', ['-l', disk]); // the store may still be open
    await rm(path, { recursive: true, force: true });
  });
  if (status === 0) return path;
  const reason = `no small disk can be mounted: ${error?.message ?? String(stderr)}`;
  if (process.env.REQUIRE_ALL) throw new Error(`REQUIRE_ALL is set, but ${reason}`);
  t.skip(reason);
  return null;
}
