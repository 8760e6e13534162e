import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '..');
const BUNDLE = join(ROOT, 'src/bundle.mjs');
const made = new Map<string, Promise<string>>();

/** A TypeScript program as one that Node runs as it is, as `npm start` does (src/bundle.mjs); its path. Made once. */
export function bundled(program: string): Promise<string> {
  let path = made.get(program);
  if (!path) made.set(program, (path = make(program)));
  return path;
}

async function make(program: string): Promise<string> {
  const place = createHash('sha256').update(program).digest('hex').slice(0, 8);
  const folder = join(ROOT, 'node_modules/.cache/sluice', place);
  await promisify(execFile)(process.execPath, [BUNDLE, program, folder]);
  return join(folder, `${basename(program, '.ts')}.mjs`);
}
