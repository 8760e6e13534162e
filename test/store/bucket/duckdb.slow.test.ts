import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { BucketConnection } from '../../../src/store/bucket/request.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { awaited, exportRows, order } from '../../support/exports/exports.ts';
import { testServer } from '../../support/process/server.ts';
import { fromWheel, lastLine, type Wheel } from '../../support/process/wheel.ts';
import { filesAt, placeOf } from '../../support/store/bucket/bucket.ts';
import { ADMIN, Seaweed } from '../../support/store/bucket/seaweed.ts';

/** The last release for which PyPI has the extension that reads URLs. */
const DUCKDB: Wheel = {
  requirement: 'duckdb-cli==1.5.5',
  sha256: '2dda43dbd9d112e5d7c6ffca4d226403696812a79fbb19342c2afa6312974f33',
  path: 'duckdb_cli/duckdb',
  name: 'duckdb-1.5.5',
};
const EXTENSION: Wheel = {
  requirement: 'duckdb-extension-httpfs==1.5.5',
  sha256: '84913dbe172ccb54368de2c4a020c38ca8b0e76f99df548f7fac37934cc7826f',
  path: 'duckdb_extension_httpfs/extensions/v1.5.5/httpfs.duckdb_extension',
  name: 'httpfs.duckdb_extension',
};
const ROWS = exportRows(3_000);

const run = promisify(execFile);

/** The variables of a shell that finds DuckDB and its extension. null: it can't run here, and the test is skipped. */
async function withDuckdb(t: TestContext): Promise<Record<string, string> | null> {
  try {
    const program = await fromWheel(DUCKDB);
    const extension = await fromWheel(EXTENSION);
    const folder = await temporaryFolder(t);
    const bin = join(folder, 'bin');
    await mkdir(bin);
    await symlink(program, join(bin, 'duckdb'));
    const variables = { PATH: `${bin}:${process.env.PATH ?? ''}`, HOME: folder };
    await run('duckdb', ['-c', `INSTALL '${extension}'`], { env: variables });
    return variables;
  } catch (error) {
    const reason = `no DuckDB: ${lastLine(error)}`;
    if (process.env.REQUIRE_ALL) throw new Error(`REQUIRE_ALL is set, but ${reason}`, { cause: error });
    t.skip(reason);
    return null;
  }
}

/** The commands and the query that docs/clients.md has for exports in a bucket. */
async function recipes(): Promise<{ readonly byLink: string; readonly byKey: string }> {
  const text = await readFile(join(import.meta.dirname, '../../../docs/clients.md'), 'utf8');
  const section = text.split('Where [exports lie in a bucket]')[1]?.split('\n## ')[0] ?? '';
  const blocks = [...section.matchAll(/```(?:bash|sql)\n([^]*?)```/g)].map(([, block = '']) => block);
  assert.equal(blocks.length, 2);
  const [byLink = '', byKey = ''] = blocks;
  return { byLink, byKey };
}

function replaced(text: string, from: string, to: string): string {
  assert.ok(text.includes(from), `the document has ${from}`);
  return text.replace(from, to);
}

test('DuckDB reads an export in a bucket by its link and by its key, as the document says', async (t) => {
  const weed = await Seaweed.start(t);
  const variables = weed && (await withDuckdb(t));
  if (!weed || !variables) return;
  const FILES = filesAt('acme-exports', weed.endpoint, 'sluice');
  const owner = new BucketConnection(placeOf({ FILES }));
  await owner.ask({ method: 'PUT', key: '' });
  owner.close();
  const server = await testServer(t, 'sqlite', 'uws', { FILES, ...ADMIN });
  await server.insert(ROWS);
  const { id, file } = await awaited(
    server.url,
    (await order(server.url, { format: 'parquet', compression: 'none' })).id,
  );
  const link = await fetch(`${server.url}${file?.url}`, { redirect: 'manual' });
  const key = new URL(link.headers.get('location') ?? '').pathname.slice(1);
  const { byLink, byKey } = await recipes();
  const command = replaced(byLink, 'https://rows.example', server.url);
  const { stdout } = await run('sh', ['-euc', command], { env: { ...variables, ID: id, KEY: 'none' } });
  assert.match(stdout, /books\s*│\s*1000\b/);

  let query = replaced(byKey, "KEY_ID '...'", `KEY_ID '${ADMIN.S3_ACCESS_KEY_ID}'`);
  query = replaced(query, "SECRET '...'", `SECRET '${ADMIN.S3_SECRET_ACCESS_KEY}'`);
  query = replaced(query, 'minio.internal:9000', new URL(weed.endpoint).host);
  query = query.replace(/'s3:[^']*'/, `'s3://${key}'`);
  const read = await run('duckdb', ['-c', `LOAD httpfs; ${query}`], { env: variables });
  assert.match(read.stdout, /i0000007\b[^]*\b3000 rows/);
});
