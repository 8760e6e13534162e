import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { cp, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { readConfig } from '../../src/settings/config.ts';
import { SETTINGS } from '../../src/settings/settings.ts';
import { temporaryFolder } from '../support/directory.ts';
import { cli } from '../support/process/child-server.ts';

const ROOT = join(import.meta.dirname, '../..');
const textOf = (name: string) => readFileSync(join(ROOT, name), 'utf8');
const PACKAGE = JSON.parse(textOf('package.json')) as {
  readonly files: readonly string[];
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly bin: Readonly<Record<string, string>>;
};
const isSetting = (name: string) => name in SETTINGS.properties;

interface Service {
  readonly image?: string;
  readonly build?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { condition: string }>>;
  readonly profiles?: readonly string[];
  readonly read_only?: boolean;
  readonly healthcheck?: { readonly test: readonly string[] };
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

/** The instructions of the Dockerfile, one list for each stage. */
function stages(): { readonly instruction: string; readonly rest: string }[][] {
  const found: { instruction: string; rest: string }[][] = [];
  for (const line of textOf('Dockerfile').split('\n')) {
    const [, instruction = '', rest = ''] = /^([A-Z]+) (.+)$/.exec(line) ?? [];
    if (instruction === 'FROM') found.push([]);
    if (instruction !== '') found.at(-1)?.push({ instruction, rest });
  }
  return found;
}

const compose = parse(textOf('docker-compose.yml'), { merge: true }) as Compose;

/** The settings of a service, each of which must be one. */
function configOf({ environment = {} }: Service) {
  assert.deepEqual(
    Object.keys(environment).filter((name) => !isSetting(name)),
    [],
  );
  return readConfig({ ...environment });
}

test('docker compose starts sluice with existing, valid settings, after a database that is ready', () => {
  const { services } = compose;
  const { sluice } = services;
  assert.ok(sluice);
  assert.equal(configOf(sluice).SAMPLE, 'on');
  const { MONGODB_URI, REDIS_URL } = sluice.environment ?? {};
  for (const [name, address] of [
    ['mongodb', MONGODB_URI],
    ['redis', REDIS_URL],
  ] as const) {
    assert.equal(new URL(address ?? '').hostname, name);
    assert.equal(sluice.depends_on?.[name]?.condition, 'service_healthy');
    assert.ok((services[name]?.healthcheck?.test.length ?? 0) > 1, `${name} has a health check`);
  }
});

test('docker compose up embedded starts sluice alone, with the embedded store', () => {
  const { embedded, ...others } = compose.services;
  assert.ok(embedded);
  assert.deepEqual(embedded.profiles, ['embedded'], 'it does not start with the others');
  assert.equal(embedded.depends_on, undefined);
  assert.equal(configOf(embedded).MONGODB_URI, undefined);
  for (const [name, { profiles }] of Object.entries(others)) assert.equal(profiles, undefined, name);
});

test('containers keep data in named volumes of their own, and publish sluice on the loopback alone', () => {
  const { services, volumes } = compose;
  const mounted = Object.values(services).flatMap((service) => service.volumes ?? []);
  assert.deepEqual(mounted.map((volume) => volume.split(':')[0]).sort(), Object.keys(volumes).sort());
  assert.deepEqual([...new Set(Object.values(volumes))], [null], 'no driver, and no folder of the host');
  for (const [name, { ports, read_only: isReadOnly, volumes: own, healthcheck }] of Object.entries(
    services,
  )) {
    const isSluice = ['sluice', 'embedded'].includes(name);
    assert.deepEqual(ports, isSluice ? ['127.0.0.1:3000:3000'] : undefined, name);
    if (!isSluice) continue;
    assert.equal(isReadOnly, true);
    assert.deepEqual(own, [`${name}:/data`]);
    assert.match(healthcheck?.test.join(' ') ?? '', /127\.0\.0\.1:3000\/readyz/);
  }
});

/** What the C library reads. docs/operations.md has the values. */
const OF_GLIBC = /^MALLOC_[A-Z_]+$/;

test('the image is built in one stage and runs in another, without root and with only the files that it needs', async () => {
  const [build = [], run = []] = stages();
  assert.equal(stages().length, 2);
  const ignored = textOf('.dockerignore').trim().split('\n');
  for (const { instruction, rest } of build) {
    if (instruction !== 'COPY') continue;
    for (const source of rest.split(' ').slice(0, -1)) {
      assert.ok(existsSync(join(ROOT, source)), `${source} is there`);
      assert.ok(!ignored.includes(source), `${source} is not ignored`);
    }
  }
  const copied = run
    .filter(({ instruction }) => instruction === 'COPY')
    .map(({ rest }) => rest.split(' ').at(-2)?.replace('/app/', ''));
  for (const file of ['package.json', 'LICENSE', ...PACKAGE.files.filter((name) => !name.startsWith('!'))])
    assert.ok(copied.includes(file), `${file} of the package is in the image`);
  const settings = run
    .filter(({ instruction }) => instruction === 'ENV')
    .flatMap(({ rest }) => rest.split(' '));
  const { NODE_ENV, ...own }: Record<string, string> = Object.fromEntries(
    settings.map((setting) => setting.split('=') as [string, string]),
  );
  assert.equal(NODE_ENV, 'production');
  assert.deepEqual(
    Object.keys(own).filter((name) => !isSetting(name) && !OF_GLIBC.test(name)),
    [],
  );
  assert.equal(readConfig(own).HOST, '0.0.0.0');
  const last = (wanted: string) => run.findLast(({ instruction }) => instruction === wanted)?.rest ?? '';
  assert.equal(last('USER'), 'node');
  assert.equal(last('VOLUME'), own.DATA_DIR);
  assert.match(last('HEALTHCHECK'), /127\.0\.0\.1:3000\/livez/);
  const [program, cli, ...command] = JSON.parse(last('CMD')) as string[];
  assert.deepEqual([program, cli], ['node', 'dist/process/cli.js']);
  const { stdout } = await runCli([...command, '--help']);
  assert.match(stdout, /^Usage: sluice serve/);
});

test('what the image copies is enough to build the program', async (t) => {
  const folder = await temporaryFolder(t);
  const [build = []] = stages();
  for (const { rest } of build.filter(({ instruction }) => instruction === 'COPY'))
    for (const source of rest.split(' ').slice(0, -1))
      await cp(join(ROOT, source), join(folder, source), {
        recursive: true,
        // What git ignores is made by the build.
        filter: (path) => !/\/web\/(scalar\.js|explorer\.js|style\.css|clients)$|\.wasm$/.test(path),
      });
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  await promisify(execFile)(process.execPath, ['src/build.mjs'], { cwd: folder });
  assert.deepEqual(await filesBelow(join(folder, 'dist')), await filesBelow(join(await cli(), '../..')));
});

/** The files of a build, without the hashes in names of shared pieces. */
async function filesBelow(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder, { recursive: true });
  return [...new Set(names.map((name) => name.replace(/-[0-9A-Z]{8}\./, '.')))].sort();
}

test('each file that package.json names is in the package, and what it exports has types', async () => {
  const { exports, bin } = PACKAGE;
  assert.deepEqual(Object.keys(exports), ['./pull', './client', './package.json']);
  assert.deepEqual(Object.keys(bin), ['sluice']);
  const files = await packed();
  const targets = Object.values(exports).flatMap((one) =>
    typeof one === 'string' ? one : Object.values(one),
  );
  for (const path of [...targets, ...Object.values(bin), 'README.md', 'LICENSE'])
    assert.ok(files.includes(path.replace('./', '')), path);
  assert.match(textOf(Object.values(bin)[0] ?? ''), /^#!\/usr\/bin\/env node\n/);
  for (const path of files)
    assert.match(path, /^(dist\/|docs\/resources\.schema\.json$|(package\.json|README\.md|LICENSE)$)/);
});

/** A program in TypeScript that imports all that the package exports. */
const USER = `
import { pull, Refusal, type Piece } from 'sluice/pull';
import { rows, follow, SluiceError } from 'sluice/client';
export async function read(url: string): Promise<number> {
  let bytes = 0;
  for await (const piece of pull(url, { compression: 'gzip' })) bytes += sizeOf(piece);
  for await (const row of rows<{ id: number }>(url)) bytes += row.id;
  for await (const { changes, cursor } of follow(url)) bytes += changes.length + cursor.length;
  return bytes;
}
function sizeOf({ bytes, place }: Piece): number { return bytes + place.rows; }
export const errors: readonly unknown[] = [Refusal, SluiceError];
// @ts-expect-error: the types are those of the package, not any
export const wrong: string = pull;
`;

test('a program in TypeScript is checked against the types of what the package exports', async (t) => {
  await cli(); // builds them
  const folder = await temporaryFolder(t);
  const installed = join(folder, 'node_modules/sluice');
  for (const file of ['package.json', ...(await packed()).filter((path) => path.endsWith('.d.ts'))])
    await cp(join(ROOT, file), join(installed, file));
  await writeFile(join(folder, 'user.mts'), USER);
  const options = `--noEmit --strict --target es2024 --module nodenext --types node --typeRoots ${join(ROOT, 'node_modules/@types')}`;
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const { stdout } = await promisify(execFile)(tsc, [...options.split(' '), 'user.mts'], {
    cwd: folder,
  }).catch((error: unknown) => error as { stdout: string });
  assert.equal(stdout, '');
});

let files: Promise<readonly string[]> | null = null;
/** The files of the package. */
const packed = () => (files ??= pack());

async function pack(): Promise<readonly string[]> {
  await cli(); // builds them
  const pack = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const { stdout } = await promisify(execFile)('npm', pack, { cwd: ROOT, maxBuffer: 1e8 });
  const [one] = JSON.parse(stdout) as { files: { path: string }[] }[];
  return one?.files.map(({ path }) => path) ?? [];
}

test('the package holds the program in few files, each with a map, and the licenses of what is in them', async () => {
  const files = await packed();
  const program = files.filter((path) => /^dist\/([^/]*|(process|pull)\/.*)\.js$/.test(path));
  for (const path of ['process/cli.js', 'pull/pull.js', 'pull/pull.d.ts'])
    assert.ok(files.includes(`dist/${path}`), path);
  assert.ok(program.length < 100, program.join('\n'));
  for (const path of program) assert.ok(files.includes(`${path}.map`), path);
  const licenses = textOf('dist/LICENSES');
  for (const name of ['ajv', 'bson', 'mongodb', 'pino'])
    assert.match(licenses, new RegExp(`^${name}:\\n`, 'm'));
});

test('the package holds the clients of its version, and the documents name its wheel', async () => {
  const { version } = JSON.parse(textOf('package.json')) as { version: string };
  const wheel = `sluice_client-${version}-py3-none-any.whl`;
  const clients = (await packed()).filter((path) => path.startsWith('dist/web/clients/'));
  const names = ['sluice-pull.mjs', 'sluice.d.ts', 'sluice.mjs', wheel];
  assert.deepEqual(
    clients.sort(),
    names.map((name) => `dist/web/clients/${name}`),
  );
  for (const document of ['README.md', 'docs/clients.md']) {
    const named = textOf(document).match(/sluice_client-[\d.]+-py3-none-any\.whl/g) ?? [];
    assert.deepEqual([...new Set(named)], [wheel], document);
  }
});

test('every command has a manual page with usage, options, settings and exit codes, no wider than a terminal', async () => {
  const pages: [command: string[], parts: RegExp[]][] = [
    [[], [/^sluice - /, /sluice serve /, /sluice import /, /sluice pull /, /sluice COMMAND --help/]],
    [['serve'], Object.keys(SETTINGS.properties).map((name) => new RegExp(`^ +${name} `, 'm'))],
    [['import'], [/--format/, /--on-conflict/, /--generate/, /--sample/]],
    [
      ['pull'],
      [/-o, --output/, /--parallel/, /--snapshot/, /--compression/, /--key-file/, /--retry-for/, /--restart/],
    ],
  ];
  for (const [command, parts] of pages) {
    const { stdout } = await runCli([...command, '--help']);
    for (const part of [...parts, /Usage:/, /Exit codes?: 0 /]) assert.match(stdout, part, command.join(' '));
    const widest = Math.max(...stdout.split('\n').map((line) => line.length));
    assert.ok(command[0] === 'serve' || widest <= 120, `${command.join(' ')}: ${widest} characters`);
  }
});

test('a wrong command line prints the usage of its command', async () => {
  for (const command of ['serve', 'import', 'pull', 'key', 'load']) {
    const ended = runCli([command, '--nothing-has-this-option', '1', '2', '3']);
    await assert.rejects(ended, ({ code, stderr }: { code: number; stderr: string }) => {
      assert.equal(code, 2, command);
      assert.match(
        stderr,
        new RegExp(`^sluice: .*\\n\\nUsage:\\s+sluice ${command}.*--help explains it.\\n$`, 's'),
      );
      return true;
    });
  }
});

async function runCli(args: readonly string[]): Promise<{ stdout: string }> {
  return promisify(execFile)(process.execPath, [await cli(), ...args]);
}
