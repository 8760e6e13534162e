import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { ObjectId } from 'mongodb';
import { sluice } from '../support/process/commands.ts';
import { checkBlocks, documentText, ROOT } from '../support/papers/documents.ts';
import { asShown, CURSOR, REQUEST_ID } from '../support/papers/varying.ts';
import { testClient } from '../support/store/mongo/mongo.ts';
import { testMongo } from '../support/store/mongo/mongod.ts';
import { temporaryFolder } from '../support/directory.ts';
import { serverOn } from '../support/process/server.ts';

const BLOCKS = /```shell-session\n(\$ [^]*?)```/g;
const STATUSES = ['new', 'paid', 'sent'];
const COUNTRIES = ['NL', 'DE'];

/** The orders of the README: 1,000 of them, with the ids and dates of a shop's first weeks. */
const ORDERS = Array.from({ length: 1_000 }, (_, n) => ({
  _id: new ObjectId((0x695_5b9_00 + n * 2_677).toString(16).padStart(8, '0') + 'c0ffee0000000000'),
  status: STATUSES[n % 3],
  createdAt: new Date(Date.UTC(2026, 0, 1) + n * 2_677_000),
  customer: { name: `Customer ${n}`, country: COUNTRIES[n % 2] },
  total: 5 + ((n * 37) % 400) / 4,
}));

test('the commands of the README for an existing collection print what it shows', async (t) => {
  const uri = await testMongo(t);
  if (uri === null) return;
  const database = testClient(t, uri).db();
  await database.collection('orders').insertMany(ORDERS.map((order) => ({ ...order })));
  await database.collection('orders').createIndex({ status: 1, createdAt: 1, _id: 1 });
  const server = await serverOn(t, { MONGODB_URI: uri, EXPOSE: 'orders' });
  await checkBlocks('README.md', BLOCKS, (command) => run(command, server.url, database.databaseName));
});

test('the command of the README for a file prints what it shows', async (t) => {
  const text = documentText('README.md');
  const [, csv = '', command = '', output = ''] =
    /```csv\n([^]*?)```\n\n```console\nnpm run import -- (.*)\n```\n\n```text\n([^]*?)```/.exec(text) ?? [];
  const directory = await temporaryFolder(t);
  const file = join(directory, 'artikel.csv');
  writeFileSync(file, csv);
  const args = command.split(' ').map((one) => (one === 'artikel.csv' ? file : one));
  const { code, said } = await sluice(['import', ...args], { DATA_DIR: join(directory, 'data') });
  assert.equal(code, 0, said);
  if (process.env.UPDATE_DOCUMENTS)
    writeFileSync(
      join(ROOT, 'README.md'),
      documentText('README.md').replace(output, () => said),
    );
  else assert.equal(said, output);
});

async function run(command: string, url: string, database: string): Promise<string> {
  const here = command.replaceAll('localhost:3000', new URL(url).host);
  const { stdout } = await promisify(execFile)('bash', ['-c', here]);
  return asShown(stdout, [REQUEST_ID, CURSOR]).replaceAll(database, 'shop');
}
