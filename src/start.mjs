/**
 * Runs the built program of this checkout: `node src/start.mjs serve`. An installed package has its own `sluice` command.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

const built = join(import.meta.dirname, '../dist/.built');
if (existsSync(built)) {
  await import('../dist/process/cli.js');
} else {
  process.stderr.write(
    'sluice: there is no build yet. Run `npm ci`, or `npm run build` after `npm ci --ignore-scripts`.\n',
  );
  process.exitCode = 1;
}
