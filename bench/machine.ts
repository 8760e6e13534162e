import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { cpus, release, totalmem } from 'node:os';

/** A description of the machine. A figure means nothing without it. */
export function machineLine(): string {
  const [cpu] = cpus();
  const memory = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} cores ${cpu?.model.trim() ?? ''}, ${memory} GiB, Linux ${release()}, Node ${process.versions.node}`;
}

const PACKAGES = [
  'mongodb',
  '@photostructure/sqlite',
  'uWebSockets.js',
  'fastify',
  '@fastify/compress',
  'fast-json-stringify',
  'express',
];

/** The versions of everything measured. `mongod` is null when there was none. */
export function versions(mongod: string | null): Record<string, string> {
  const require = createRequire(import.meta.url);
  const lock = require('../package-lock.json') as { packages: Record<string, { version?: string }> };
  const found = PACKAGES.map((name) => [name, lock.packages[`node_modules/${name}`]?.version ?? 'unknown']);
  return { node: process.versions.node, ...(mongod && { mongod }), ...Object.fromEntries(found) } as Record<
    string,
    string
  >;
}

/** The commit, and whether the relevant files differ from it. */
export function commit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim();
  const changed = git('status', '--porcelain', '--', 'src', 'bench', 'package-lock.json') !== '';
  return `${git('rev-parse', '--short', 'HEAD')}${changed ? ' with changes' : ''}`;
}
