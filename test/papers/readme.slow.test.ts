import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { checkBlocks, DOCUMENTS, documentText } from '../support/papers/documents.ts';
import { asShown, CURSOR, PART, REQUEST_ID } from '../support/papers/varying.ts';
import { testServer } from '../support/process/server.ts';

const ADDRESS = 'localhost:3000';

const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;

/** Values that differ from run to run, and nothing else. */
const VARYING: Parameters<typeof asShown>[1] = [
  REQUEST_ID,
  [/\d\d:\d\d:\d\d GMT/g, '12:00:00 GMT'],
  CURSOR,
  PART,
  [new RegExp(`"createdAt":"${TIME}"`, 'g'), '"createdAt":"2026-01-02T12:00:00.000Z"'],
  [new RegExp(`"updatedAt":"${TIME}"`, 'g'), '"updatedAt":"2026-01-02T12:00:01.000Z"'],
  // An export's id, name and times.
  [new RegExp(`"(finished|expires)At":"${TIME}"`, 'g'), '"$1At":"2026-01-02T12:00:02.000Z"'],
  [/\bitems-[0-9a-f]{8}\./g, 'items-8f14e45f.'],
  [/\b[0-9a-f]{32}\b/g, '8f14e45fceea167a5a36dedd4bea2543'],
  // A user's id when the server creates it (UUID version 7), and a user's ETag, which is strong.
  [/"id":"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}"/g, '"id":"019b7e0e-6c00-7a3c-9d5e-2f1b4c6d8e90"'],
  [/^etag: "[0-9a-f]{16}"$/gm, 'etag: "5f0c2d9be1a47386"'],
  // The ETag of a page, which has a cursor.
  [/^etag: W\/"[0-9a-f]{16}"$/gm, 'etag: W/"192ee4c16b9f65bb"'],
];

/** The console blocks with `$ ` commands. The output of each command is on the lines below it. */
const BLOCK = /```console\n(\$ [^]*?)```/;
const BLOCKS = new RegExp(BLOCK, 'g');

async function run(command: string, url: string): Promise<string> {
  const { stdout } = await promisify(execFile)('bash', [
    '-c',
    command.replaceAll(ADDRESS, new URL(url).host),
  ]);
  return asShown(stdout.replaceAll('\r', ''), VARYING);
}

for (const path of DOCUMENTS) {
  const text = documentText(path);
  if (!BLOCK.test(text)) continue;
  test(`every command in ${path} prints what ${path} shows`, async (t) => {
    const server = await testServer(t, 'sqlite', 'uws', { SAMPLE: 'auto' });
    assert.doesNotMatch(text, /is of another release/, 'a cursor in a command must be replaced');
    await checkBlocks(path, BLOCKS, (command) => run(command, server.url));
  });
}

test('the documents contain commands', () => {
  const shown = DOCUMENTS.filter((path) => BLOCK.test(documentText(path)));
  assert.ok(['README.md', 'docs/api.md', 'docs/streams.md'].every((path) => shown.includes(path)));
});
