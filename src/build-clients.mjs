/**
 * Builds the clients that a server hands out: two programs in JavaScript, each one file, and the wheel of the Python
 * client. The same sources make the same bytes.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';

const ROOT = dirname(import.meta.dirname);
const JAVASCRIPT = join(ROOT, 'clients/javascript');
const PYTHON = join(ROOT, 'clients/python');

/** Libraries in the older form of modules ask for those of Node by `require`. */
export const REQUIRE = `import { createRequire as createOwnRequire } from 'node:module';
const require = createOwnRequire(import.meta.url);
`;

/** What browsers have in place of a library of Node. */
export const INSTEAD_OF_ZLIB = { 'node:zlib': join(ROOT, 'src/web/page/crc32.ts') };

/** The clients by the names of their files. */
export async function makeClients() {
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  const pull = await bundle('sluice-pull', version, {
    platform: 'node',
    target: 'node20.19',
    banner: `#!/usr/bin/env node\n${REQUIRE}`,
    alias: { '@photostructure/sqlite': join(JAVASCRIPT, 'node-sqlite.ts') },
  });
  const client = await bundle('sluice', version, {
    target: ['node20.19', 'chrome120', 'firefox124', 'safari17.4'],
    banner: '',
    alias: INSTEAD_OF_ZLIB,
  });
  const wheel = await makeWheel(version);
  return new Map([
    ['sluice-pull.mjs', pull],
    ['sluice.mjs', client],
    ['sluice.d.ts', await readFile(join(JAVASCRIPT, 'sluice-types.d.ts'), 'utf8')],
    [wheel.name, wheel.bytes],
  ]);
}

/** One file from a program and all that it imports. `alias`: other files in place of libraries. */
async function bundle(name, version, { banner, ...options }) {
  const { build } = await import('esbuild');
  const { outputFiles, metafile } = await build({
    entryPoints: [join(JAVASCRIPT, `${name}.ts`)],
    outfile: `${name}.mjs`,
    bundle: true,
    write: false,
    metafile: true,
    absWorkingDir: ROOT,
    format: 'esm',
    charset: 'utf8',
    define: { VERSION: JSON.stringify(version) },
    banner: { js: `${banner}// ${name} ${version} of sluice. MIT License.\n` },
    tsconfigRaw: '{}',
    ...options,
  });
  const [{ text }] = outputFiles;
  return `${text}${await licensesOf(Object.keys(metafile.inputs))}`;
}

/** The licenses of the libraries among these files, as a comment. */
export async function licensesOf(files) {
  const folders = files.map((file) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0]);
  const notices = [...new Set(folders.filter(Boolean))].sort().map(async (folder) => {
    const file =
      (await readdir(join(ROOT, folder))).find((one) => /^licen[cs]e/i.test(one)) ?? 'package.json';
    const text = await readFile(join(ROOT, folder, file), 'utf8');
    const license = file === 'package.json' ? JSON.parse(text).license : text.trim();
    return `${folder.slice('node_modules/'.length)}:\n\n${license}\n`;
  });
  const texts = await Promise.all(notices);
  return texts.length === 0
    ? ''
    : `/*\nThis file contains:\n\n${texts.join('\n').replaceAll('*/', '* /')}*/\n`;
}

/** The wheel of the Python client: a zip of its modules, its metadata and a list of both (PEP 427). */
async function makeWheel(version) {
  const project = await readFile(join(PYTHON, 'pyproject.toml'), 'utf8');
  const module = 'sluice_client';
  const source = join(PYTHON, 'src', module);
  const names = (await readdir(source)).filter((name) => /\.(py|typed)$/.test(name)).sort();
  const info = `${module}-${version}.dist-info`;
  const files = [
    ...(await Promise.all(
      names.map(async (name) => [`${module}/${name}`, await readFile(join(source, name))]),
    )),
    [`${info}/METADATA`, Buffer.from(await metadataOf(project, version))],
    [
      `${info}/WHEEL`,
      Buffer.from('Wheel-Version: 1.0\nGenerator: sluice\nRoot-Is-Purelib: true\nTag: py3-none-any\n'),
    ],
    [`${info}/licenses/LICENSE`, await readFile(join(PYTHON, 'LICENSE'))],
  ];
  const record = files.map(
    ([name, bytes]) =>
      `${name},sha256=${createHash('sha256').update(bytes).digest('base64url')},${bytes.length}\n`,
  );
  files.push([`${info}/RECORD`, Buffer.from(`${record.join('')}${info}/RECORD,,\n`)]);
  return { name: `${module}-${version}-py3-none-any.whl`, bytes: zip(files) };
}

/** The metadata of a package (PEP 566, PEP 639), from its pyproject.toml, where each value stands on one line. */
async function metadataOf(project, version) {
  const value = (name) => {
    const [, json] = new RegExp(`^${name} = (.*)$`, 'm').exec(project) ?? [];
    if (json === undefined) throw new Error(`clients/python/pyproject.toml has no ${name}`);
    return JSON.parse(json);
  };
  if (value('version') !== version)
    throw new Error(`clients/python/pyproject.toml has not the version ${version}`);
  const [, optional = ''] = /^\[project\.optional-dependencies\]\n((?:.+\n)*)/m.exec(project) ?? [];
  const extras = [...optional.matchAll(/^(\S+) = (.*)$/gm)];
  return [
    'Metadata-Version: 2.4',
    `Name: ${value('name')}`,
    `Version: ${version}`,
    `Summary: ${value('description')}`,
    `License-Expression: ${value('license')}`,
    'License-File: LICENSE',
    `Keywords: ${value('keywords').toSorted().join(',')}`,
    ...value('classifiers').map((one) => `Classifier: ${one}`),
    `Requires-Python: ${value('requires-python')}`,
    ...extras.flatMap(([, extra, needed]) => [
      `Provides-Extra: ${extra}`,
      ...JSON.parse(needed).map((one) => `Requires-Dist: ${one}; extra == '${extra}'`),
    ]),
    'Description-Content-Type: text/markdown',
    '',
    await readFile(join(PYTHON, value('readme')), 'utf8'),
  ].join('\n');
}

/** The first day that the format knows, 1980-01-01. */
const DAY = 0x21;

/** A zip archive of files that are stored as they are. */
function zip(files) {
  const [parts, entries] = [[], []];
  let at = 0;
  for (const [name, bytes] of files) {
    const path = Buffer.from(name);
    const fields = Buffer.alloc(26); // from the version needed to the length of the extra field
    fields.writeUInt16LE(20, 0);
    fields.writeUInt16LE(DAY, 8);
    fields.writeUInt32LE(crc32(bytes), 10);
    fields.writeUInt32LE(bytes.length, 14);
    fields.writeUInt32LE(bytes.length, 18);
    fields.writeUInt16LE(path.length, 22);
    const local = [Buffer.from('PK\x03\x04'), fields, path, bytes];
    const rest = Buffer.alloc(14); // from the length of the comment to the place of the file
    rest.writeUInt32LE((0o100644 << 16) >>> 0, 6);
    rest.writeUInt32LE(at, 10);
    entries.push(Buffer.from('PK\x01\x02'), Buffer.from([20, 3]), fields, rest, path);
    parts.push(...local);
    at += local.reduce((sum, { length }) => sum + length, 0);
  }
  const length = entries.reduce((sum, entry) => sum + entry.length, 0);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(files.length, 8);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...parts, ...entries, end]);
}
