import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { testServer, type StoreName } from '../support/process/server.ts';
import { temporaryFolder } from '../support/directory.ts';
import { until } from '../support/store/changes.ts';

/**
 * The path of schemathesis, which .ci/schemathesis installs. Without it the test is skipped, because a run takes a
 * minute per store.
 */
const PROGRAM = process.env.SCHEMATHESIS;
const CONFIG = join(import.meta.dirname, 'schemathesis.toml');
/** A running export that is deleted is still listed as cancelled; final deletion has its own tests. */
const EXCLUDED = ['--exclude-checks', 'use_after_free'];
const EXAMPLES = process.env.LONG ? 200 : 15;

describe('schemathesis', { concurrency: true }, () => {
  for (const store of ['sqlite', 'mongodb'] satisfies StoreName[])
    test(`schemathesis finds nothing on ${store}, with all of its checks but one`, async (t) => {
      if (!PROGRAM) {
        t.skip('SCHEMATHESIS is not set');
        return;
      }
      const FILES = pathToFileURL(await temporaryFolder(t)).href;
      const limits = { RATE_LIMIT: 'off', STREAM_LIMIT: 'off', EXPORT_LIMIT: '100000' };
      const settings = { SAMPLE: 'on', EDITIONS: 'items', FILES, ...limits };
      const server = await testServer(t, store, 'uws', settings);
      if (!server) return;
      // Until then its head is 503.
      await until('there is an edition', async () => (await server.get('/items/edition')).status === 200);
      const cwd = await temporaryFolder(t);
      const url = `${server.url}/openapi.json`;
      const run = [
        '--config-file',
        CONFIG,
        'run',
        url,
        '--checks',
        'all',
        ...EXCLUDED,
        '--seed',
        '1',
        '--no-color',
      ];
      const options = { cwd, maxBuffer: 64 * 2 ** 20 };
      const found = await promisify(execFile)(
        PROGRAM,
        [...run, '--max-examples', String(EXAMPLES)],
        options,
      ).then(
        ({ stdout }) => ({ failed: false, stdout }),
        (error: unknown) => ({ failed: true, stdout: (error as { readonly stdout: string }).stdout }),
      );
      const report = found.stdout.split('\n').map((line) => line.slice(0, 300));
      assert.equal(found.failed, false, report.join('\n'));
      t.diagnostic(report.find((line) => line.includes('generated')) ?? '');
      // An export that a request began may still run.
      await server.close();
      assert.equal(server.slots.taken, 0);
    });
});
