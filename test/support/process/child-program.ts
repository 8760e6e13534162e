import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const TSX = fileURLToPath(import.meta.resolve('tsx'));

/** The arguments that make Node run a TypeScript program of test/support. */
export function childProgram(name: string): readonly string[] {
  return ['--import', TSX, join(import.meta.dirname, '..', name)];
}
