import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { kernelWarning } from '../../src/process/kernel-warning.ts';

test('the log warns of a kernel that keeps megabytes for each slow reader, and of no other kernel', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'sluice-test-'));
  t.after(() => rmSync(directory, { recursive: true }));
  assert.equal(kernelWarning(directory), null);
  const folder = join(directory, 'net/ipv4');
  mkdirSync(folder, { recursive: true });
  const warningOf = (value: string) => {
    writeFileSync(join(folder, 'tcp_notsent_lowat'), `${value}\n`);
    return kernelWarning(directory);
  };
  assert.match(warningOf('4294967295') ?? '', /sysctl -w net\.ipv4\.tcp_notsent_lowat=65536\b/);
  assert.equal(warningOf('65536'), null);
});
