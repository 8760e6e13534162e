import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { childServer, cli } from '../support/process/child-server.ts';
import { checkBlocks, ROOT, section } from '../support/papers/documents.ts';
import { asShown, CURSOR, REQUEST_ID } from '../support/papers/varying.ts';
import { temporaryFolder } from '../support/directory.ts';
import { keyedServer, type Rows } from '../support/access/keyed.ts';

const PATH = 'docs/operations.md';
const KEYS = section(PATH, 'API keys');

/** Runs a script in a folder, with npm in this checkout. */
async function bash(script: string, cwd: string): Promise<string> {
  await cli();
  const npm = `npm() { command npm --prefix ${ROOT} "$@"; }\n`;
  const { stdout } = await promisify(execFile)('bash', ['-ec', npm + script], { cwd });
  return stdout;
}

test('the commands of operations.md for a file of keys work as they stand', async (t) => {
  const [, script = ''] = /```sh\n(key=[^]*?)```/.exec(KEYS) ?? [];
  const [before = '', after = ''] = script.split('API_KEYS_FILE=keys npm start\n');
  assert.match(after, /^curl .*localhost:3000/);
  const folder = await temporaryFolder(t);
  const key = (await bash(`${before}echo $key`, folder)).trim();
  const settings = { MONGODB_URI: '', SAMPLE: 'auto', API_KEYS_FILE: join(folder, 'keys') };
  const { url } = await childServer(t, settings);
  const asked = after.replace('localhost:3000', url.host).replace('curl', 'curl -s');
  assert.match(await bash(`key=${key}\n${asked}`, folder), /^\{"data":\[\{"id":"d00001"/);
  assert.match(await bash(`key=${key}x\n${asked}`, folder), /"code":"unauthorized"/);
});

test('the key and the JSON file of operations.md do what the text shows', async (t) => {
  const [, json = ''] = /```json\n([^]*?)```/.exec(KEYS) ?? [];
  const orders: Rows = {
    name: 'orders',
    rows: ['acme', 'bolt', 'acme'].map((tenant, n) => ({
      _id: n + 1,
      tenant,
      status: 'new',
      total: 10 * (n + 1),
      margin: n,
    })),
    indexes: [['tenant']],
  };
  const server = await keyedServer(t, 'sqlite', [{ name: 'all' }], [orders]);
  const folder = await temporaryFolder(t);
  writeFileSync(server.keysFile, json);
  assert.equal(await server.reload(), true);
  const { host } = new URL(server.url);
  const run = async (command: string) => shown(await bash(command.replace('localhost:3000', host), folder));
  await checkBlocks(PATH, /```shell-session\n(\$ [^]*?)```/g, run, KEYS);
  const made = await bash('npm run --silent key -- new --name acme', folder);
  const [, key = '', entry = ''] = /: +(\S+)\n.*\n.*: +(\{.*\})\n$/.exec(made) ?? [];
  writeFileSync(server.keysFile, `{"keys":[${entry}]}`);
  assert.equal(await server.reload(), true);
  const { status } = await fetch(`${server.url}/orders`, { headers: { authorization: `Bearer ${key}` } });
  assert.equal(status, 200);
  assert.ok(!readFileSync(server.keysFile, 'utf8').includes(key));
});

/** An output whose random values are those of the document. */
function shown(said: string): string {
  const key = '2rVTuVhsPxgKtF0VCqnNaYxUeK9FQmGmuYBB7mSjFvo';
  const digest = createHash('sha256').update(key).digest('hex');
  return asShown(said, [
    [/^(key, shown only now: +)[\w-]{43}$/m, `$1${key}`],
    [/\b[0-9a-f]{64}\b/g, digest],
    ...[CURSOR, REQUEST_ID],
  ]);
}
