import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { chmod, copyFile, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { loadAddon } from '../../../src/engine/uws/addon.ts';
import { createEngine } from '../../../src/engine/engine.ts';
import { fitToOlderGlibc } from '../../../src/engine/uws/fit.ts';
import { echo } from '../../support/engine/engines.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { TYPE_SCRIPT } from '../../support/process/child-program.ts';

const require = createRequire(import.meta.url);
const PACKAGE = dirname(require.resolve('uWebSockets.js'));
const HERE = join(PACKAGE, `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`);
const LINUX = join(PACKAGE, 'uws_linux_x64_115.node');

const TOO_NEW = new Error("/lib/libc.so.6: version `GLIBC_2.38' not found (required by uws.node)");

/** A loader on a machine whose C library is too old for `file`. Any other file is what `loaded` makes of its name. */
function oldMachine(file: string, loaded: (asked: string) => unknown = (asked) => asked) {
  return (asked: string): unknown => {
    if (asked === file) throw TOO_NEW;
    return loaded(asked);
  };
}

async function sha256(file: string): Promise<string> {
  return createHash('sha256')
    .update(await readFile(file))
    .digest('hex');
}

/** The reason why the installed addon does not load unchanged. Null when it does. */
function whyNotAsInstalled(): string | null {
  try {
    require(HERE);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

describe('the addon', () => {
  it('is loaded from its installed file where the C library is new enough', async (t) => {
    const cacheDirectory = join(await temporaryFolder(t), 'cache');
    assert.equal(loadAddon({ file: LINUX, cacheDirectory, load: (asked) => asked }), LINUX);
    await assert.rejects(stat(cacheDirectory), { code: 'ENOENT' });
  });

  it('is loaded from a private, fitted copy where the C library is too old, and the copy is removed', async (t) => {
    const before = await sha256(LINUX);
    const cacheDirectory = join(await temporaryFolder(t), 'a', 'cache');
    const modeOf = (path: string) => statSync(path).mode & 0o777;
    const modes = (asked: string) => [asked, dirname(asked), cacheDirectory].map(modeOf);
    const seen = loadAddon({ file: LINUX, cacheDirectory, load: oldMachine(LINUX, modes) });
    assert.deepEqual(seen, [0o600, 0o700, 0o700]);
    assert.deepEqual(await readdir(cacheDirectory), []);
    assert.equal(await sha256(LINUX), before, 'the installed file is unchanged');
  });

  it('can be fitted for all 8 Linux builds, of every Node and both processors', async (t) => {
    const cacheDirectory = await temporaryFolder(t);
    const files = (await readdir(PACKAGE)).filter((name) => /^uws_linux_.*\.node$/.test(name));
    assert.equal(files.length, 8);
    for (const name of files) {
      const file = join(PACKAGE, name);
      assert.match(loadAddon({ file, cacheDirectory, load: oldMachine(file) }) as string, /\.node$/);
    }
  });

  it('is neither changed nor loaded when its hash is unknown', async (t) => {
    const folder = await temporaryFolder(t);
    const file = join(folder, 'uws_linux_x64_115.node');
    await copyFile(LINUX, file);
    const bytes = await readFile(file);
    bytes[1000] = (bytes[1000] ?? 0) ^ 1;
    await chmod(file, 0o600);
    await writeFile(file, bytes);
    const cacheDirectory = join(folder, 'cache');
    assert.throws(() => loadAddon({ file, cacheDirectory, load: oldMachine(file) }), {
      message: /requires a newer C library.*SHA-256 [0-9a-f]{64} is unknown/,
      cause: TOO_NEW,
    });
    await assert.rejects(stat(cacheDirectory), { code: 'ENOENT' });
  });

  it('is not kept in a folder that other users can write to', async (t) => {
    const cacheDirectory = await temporaryFolder(t);
    await chmod(cacheDirectory, 0o777);
    assert.throws(
      () => loadAddon({ file: LINUX, cacheDirectory, load: oldMachine(LINUX) }),
      /other users can write to it/,
    );
  });

  it('reports why no copy can be made, and rethrows other failures', async (t) => {
    const cacheDirectory = join(await temporaryFolder(t), 'file');
    await writeFile(cacheDirectory, '');
    assert.throws(
      () => loadAddon({ file: LINUX, cacheDirectory, load: oldMachine(LINUX) }),
      /the adapted copy could not be used: ENOTDIR/,
    );
    const other = new Error('wrong ELF class');
    const load = () => {
      throw other;
    };
    assert.throws(() => loadAddon({ file: LINUX, cacheDirectory, load }), other);
  });

  it('fails at once where no folder can be created', { skip: process.platform !== 'linux' }, () => {
    // In its own process, because an endless loop would block this thread.
    const script = `
      import { loadAddon } from './src/engine/uws/addon.ts';
      const file = ${JSON.stringify(LINUX)};
      const load = () => { throw new Error("version \`GLIBC_2.38' not found"); };
      try {
        loadAddon({ file, cacheDirectory: '/proc/sluice/cache', load });
      } catch (error) {
        console.log(error.message);
      }`;
    const args = [...TYPE_SCRIPT, '--input-type=module', '--eval', script];
    const said = execFileSync(process.execPath, args, { encoding: 'utf8', timeout: 30_000 });
    assert.match(said, /the adapted copy could not be used: ENOENT/);
  });

  it(
    'has every name that it needs from the C library after fitting',
    { skip: process.platform !== 'linux' },
    async (t) => {
      const copy = join(await temporaryFolder(t), 'fitted.node');
      await writeFile(copy, fitToOlderGlibc(await readFile(HERE)));
      // Names are bound on first use. LD_BIND_NOW binds all of them at once.
      const script = `require(${JSON.stringify(copy)}).App(); process.exit()`;
      execFileSync(process.execPath, ['-e', script], { env: { LD_BIND_NOW: '1' } });
    },
  );
});

describe('the choice of an engine', () => {
  const options = {
    serve: echo,
    bodyLimit: 0,
    stallTimeoutMs: 1000,
    quietMs: 0,
    keepAliveMs: 75_000,
    onError: () => undefined,
    cacheDirectory: '/dev/null/nowhere',
  };

  it('auto selects uWebSockets.js, or node:http with a warning where the addon cannot be loaded', () => {
    const { engine, warning } = createEngine('auto', options);
    if (whyNotAsInstalled() === null) {
      assert.equal(engine.name, 'uWebSockets.js');
      assert.equal(warning, null);
    } else {
      assert.equal(engine.name, 'node:http');
      assert.match(
        warning ?? '',
        /^using node:http instead of uWebSockets\.js, which cannot be loaded: .*C library/,
      );
      assert.throws(() => createEngine('uws', options), /C library/);
    }
  });
});
