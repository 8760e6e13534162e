import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The Python of the client's tests. */
const OF_TESTS = join(import.meta.dirname, '../node_modules/.cache/python/bin/python');
const python = process.env.PYTHON ?? (existsSync(OF_TESTS) ? OF_TESTS : 'python3');
const run = promisify(execFile);

/** Says which libraries Python cannot import. null: it can import all. PYTHON names another Python. */
export async function missingLibraries(libraries: readonly string[]): Promise<string | null> {
  const names = libraries.join(', ');
  try {
    await run(python, ['-c', `import ${names}`]);
    return null;
  } catch {
    return `${python} cannot import ${names}`;
  }
}

/** Runs a program. Resolves with the line of JSON that it prints. */
export async function runPython(program: string, args: readonly string[]): Promise<unknown> {
  const { stdout } = await run(python, [program, ...args]);
  return JSON.parse(stdout);
}
