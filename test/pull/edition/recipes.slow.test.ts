import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { temporaryFolder } from '../../support/directory.ts';
import { itemEditions } from '../../support/editions/edition-server.ts';
import { documentText } from '../../support/papers/documents.ts';
import { program } from '../../support/process/programs.ts';
import { editionServer, IDS, madeEdition, rowsOfIds } from '../../support/pull/editions.ts';

/** What proves that rows are the edition of a resource: it is given these, and says so. Null: there is no jq, and the test is skipped. */
async function verifier(t: TestContext, url: string) {
  if (program(t, ['jq', '/usr/bin/jq'], ['--version']) === null) return null;
  const [, shell = ''] = /```sh\n(url=\$1[\s\S]*?)```/.exec(documentText('docs/editions.md')) ?? [];
  assert.notEqual(shell, '');
  const file = join(await temporaryFolder(t), 'rows.ndjson');
  const verify = async (rows: Uint8Array): Promise<string> => {
    await writeFile(file, rows);
    const done = promisify(execFile)('sh', ['-c', shell, 'verify', url, file]);
    return done.then(
      ({ stdout }) => stdout,
      (error: unknown) => `1: ${(error as { readonly stdout: string }).stdout}`,
    );
  };
  return { file, verify };
}

test('sha256sum and jq prove the stream of a real server', async (t) => {
  const at = await itemEditions(t, 'sqlite');
  const found = await verifier(t, `${at?.server.url}/items`);
  if (!at || !found) return;
  const stream = await at.stream();
  assert.match(await found.verify(stream), /rows\.ndjson is the edition [0-9a-f]{64}\n$/);
  stream[stream.length - 3] = (stream[stream.length - 3] ?? 0) ^ 1;
  assert.match(await found.verify(stream), /^1: [0-9a-f]{64} differs\n$/);
});

test('sha256sum and jq prove a file, and name the chunk in which it differs', async (t) => {
  const made = madeEdition(rowsOfIds(IDS.escapes ?? []));
  assert.ok(made.head.index.some(({ level }) => level === 1));
  const server = await editionServer(t, made);
  const found = await verifier(t, server.url.replace('/edition', ''));
  if (!found) return;
  const { file, verify } = found;
  assert.equal(await verify(made.rows), `${file} is the edition ${made.head.edition}\n`);
  const other = Buffer.from(made.rows);
  other[other.length - 5] = (other[other.length - 5] ?? 0) ^ 1;
  assert.equal(await verify(other), `1: ${made.chunks.at(-1)?.name} differs\n`);
  assert.equal(await verify(made.rows.subarray(1)), `1: ${file} has another length\n`);
  server.files.set('edition.json', Buffer.from(JSON.stringify({ ...made.head, edition: 'a'.repeat(64) })));
  assert.equal(await verify(made.rows), '1: the chunks are not the edition\n');
  server.publish(madeEdition([]));
  assert.match(await verify(Buffer.alloc(0)), /is the edition e3b0c442/);
});
