import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { codeOf } from '../../src/base/error-reason.ts';
import { temporaryFolder } from '../support/directory.ts';
import { asAccount, childServer, cli, type CommandOf } from '../support/process/child-server.ts';
import { ITEMS, openDirectory, openRaw } from '../support/store/sqlite/sqlite.ts';
import { insertItems, makeItems } from '../support/store/items.ts';

const GROUP = 31_000;
const SERVER = 31_001;
const IMPORTER = 31_002;
const OLD = 300;
const NEW = 5_000;

const skip = whyNoAccounts();

/** Why accounts cannot be tested here. */
function whyNoAccounts(): string | false {
  if (process.getuid?.() !== 0 || spawnSync('setpriv', ['--version']).status !== 0)
    return 'needs root and setpriv';
  const [program, ...args] = asAccount(SERVER, GROUP, '022')(process.execPath, '--version');
  // A shell ends with 126 where it may not run a program, which would look like a fault of the server.
  return spawnSync(program, args).status === 0 ? false : `other accounts may not run ${process.execPath}`;
}

/** A store with rows that both accounts may write, as members of its group. */
async function sharedStore(t: TestContext): Promise<string> {
  const folder = await temporaryFolder(t);
  const directory = join(folder, 'data');
  await mkdir(directory);
  const before = process.umask(0o007);
  const store = await openDirectory(directory);
  await insertItems(store.items, makeItems(OLD));
  await store.close();
  process.umask(before);
  await chmod(folder, 0o755);
  for (const name of ['.', ...(await readdir(directory))]) {
    // SQLite may remove its log only now, as statements that are garbage hold it.
    await chown(join(directory, name), SERVER, GROUP).catch(unlessGone);
    await chmod(join(directory, name), name === '.' ? 0o2770 : 0o660).catch(unlessGone);
  }
  return directory;
}

function unlessGone(error: unknown): void {
  if (codeOf(error) !== 'ENOENT') throw error;
}

/** An import in place of all rows by an account. */
async function startImport(directory: string, file: string, as: CommandOf) {
  const [program, ...args] = as(
    process.execPath,
    await cli(),
    'import',
    file,
    '--into',
    'items',
    '--format',
    'ndjson',
    '--drop',
    '--yes',
  );
  const env = { ...process.env, MONGODB_URI: '', DATA_DIR: directory, SAMPLE: 'off', LOG_LEVEL: 'error' };
  const child = spawn(program, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const said = text(child.stderr);
  const ended = once(child, 'exit').then(async ([code]) => ({
    code: code as number | null,
    said: await said,
  }));
  return { child, ended };
}

for (const umask of ['027', '077'])
  test(
    `a load by one account beside a server of another with umask ${umask} is whole or not there`,
    { skip },
    async (t) => {
      const directory = await sharedStore(t);
      const server = await childServer(t, { DATA_DIR: directory }, asAccount(SERVER, GROUP, umask));
      const rowsOf = async () =>
        (await (await fetch(new URL('/items/stream', server.url))).text()).split('\n').filter(Boolean).length;
      assert.equal(await rowsOf(), OLD);
      const pipe = join(directory, '..', 'rows.ndjson');
      assert.equal(spawnSync('mkfifo', ['-m', '666', pipe]).status, 0);
      for (const end of ['killed', 'ended']) {
        const { child, ended } = await startImport(directory, pipe, asAccount(IMPORTER, GROUP, umask));
        t.after(() => child.kill('SIGKILL'));
        const source = await open(pipe, 'w');
        const lines = (from: number, to: number) =>
          Array.from(
            { length: to - from },
            (_, n) => `{"_id":${from + n},"category":"new","price":${n}}\n`,
          ).join('');
        await source.write(lines(0, NEW / 2));
        const isImporting = () => {
          const { sets, close } = openRaw(directory);
          const { imports = [] } = sets.get(ITEMS);
          close();
          return imports.length > 0;
        };
        while (!isImporting()) await nextTurn();
        assert.equal(await rowsOf(), OLD);
        const other = await startImport(directory, '/dev/null', asAccount(SERVER, GROUP, umask));
        assert.equal((await other.ended).code, 1, 'it has no rows');
        if (end === 'killed') child.kill('SIGKILL');
        else await source.write(lines(NEW / 2, NEW));
        await source.close();
        const { code, said } = await ended;
        assert.equal(code, end === 'killed' ? null : 0, said);
        assert.equal(await rowsOf(), end === 'killed' ? OLD : NEW);
      }
      const file = openRaw(directory);
      assert.deepEqual([file.faults(), file.count(), file.sets.get(ITEMS).imports ?? []], [[], NEW, []]);
      file.close();
    },
  );
