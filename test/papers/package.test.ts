import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

interface Locked {
  readonly cpu?: readonly string[];
  readonly os?: readonly string[];
  readonly integrity?: string;
  readonly engines?: Readonly<Record<string, string>> | readonly string[];
}

const LOCK = JSON.parse(readFileSync(join(import.meta.dirname, '../../package-lock.json'), 'utf8')) as {
  readonly packages: Readonly<Record<string, Locked>>;
};
/** The packages that `npm ci` installs, by their folders. */
const INSTALLED = Object.entries(LOCK.packages).filter(([folder]) => folder !== '');
/** The oldest Node that package.json allows. */
const OLDEST = [20, 19] as const;

/** Whether Node 20.19 is in a range such as `^18.18.0 || >=20.9`. */
function allowsOldest(range: string): boolean {
  return range.split('||').some((one) => {
    const [, sign = '', major = '0', minor = '0'] =
      /(>=|\^|~|>)?\s*v?(\d+)?(?:\.(\d+))?/.exec(one.trim()) ?? [];
    const given = Number(major) * 1000 + Number(minor);
    const oldest = OLDEST[0] * 1000 + OLDEST[1];
    return given <= oldest && (sign.startsWith('>') || given === 0 || Number(major) === OLDEST[0]);
  });
}

test('every package installs on the oldest Node without a warning about its engine', () => {
  assert.ok(allowsOldest('^18.18.0 || >=20.9.0') && allowsOldest('*') && allowsOldest('20 || 22'));
  assert.ok(!allowsOldest('>=22') && !allowsOldest('^18 || ^22.1.0') && !allowsOldest('>=20.20'));
  const refused = INSTALLED.filter(([, { engines }]) => {
    const range = engines && 'node' in engines ? engines.node : undefined;
    return range !== undefined && !allowsOldest(range);
  });
  assert.deepEqual(refused, []);
});

test('the lock file pins the content of every package, that of uWebSockets.js among them', () => {
  assert.ok(INSTALLED.some(([folder]) => folder === 'node_modules/uWebSockets.js'));
  const loose = INSTALLED.filter(([, { integrity }]) => !/^sha512-.{86}==$/.test(integrity ?? ''));
  assert.deepEqual(loose, []);
});

test('what is native has programs for amd64 and arm64 on Linux, in the registry', () => {
  const platforms = new Map<string, Set<string>>();
  for (const [folder, { os = [], cpu = [] }] of INSTALLED) {
    if (!os.includes('linux')) continue;
    const family = folder.replace(/-?\blinux-.*/, '');
    const known = platforms.get(family) ?? new Set();
    platforms.set(family, known);
    for (const one of cpu) known.add(one);
  }
  const families = [...platforms].map(([family]) => family).sort();
  // esbuild builds; the queue of Redis does without its program.
  const optional = ['node_modules/@esbuild/', 'node_modules/@msgpackr-extract/msgpackr-extract'];
  assert.deepEqual(families, [...optional, 'node_modules/@photostructure/sqlite']);
  for (const [family, cpus] of platforms) assert.ok(cpus.has('x64') && cpus.has('arm64'), family);
});

test('operations.md has the platforms that the native packages have programs for', () => {
  const root = join(import.meta.dirname, '../..');
  const modules = join(root, 'node_modules');
  const engines = readdirSync(join(modules, 'uWebSockets.js')).join(' ');
  const prebuilds = join(modules, '@photostructure/sqlite/prebuilds');
  const packages = readdirSync(prebuilds).map((platform) => {
    const hasEngine = engines.includes(`uws_${platform.replace('-', '_')}_`);
    const hasMusl = readdirSync(join(prebuilds, platform)).some((name) => name.includes('musl'));
    return [platform, hasEngine ? 'yes' : 'no', hasMusl ? 'glibc, musl' : 'yes'].join(' | ');
  });
  const document = readFileSync(join(root, 'docs/operations.md'), 'utf8');
  const rows = [...document.matchAll(/^\| ((?:linux|darwin|win32)-\w+ \| \w+ \| [\w, ]+) \|/gm)];
  assert.deepEqual(rows.map(([, row]) => row).sort(), packages.sort());
});
