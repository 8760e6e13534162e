/**
 * Loaded before programs whose statements note that they have run (see hits.ts): writes their numbers to a file in HITS when
 * the program ends. JavaScript, because it is loaded without tsx, too.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';

globalThis.__hits ??= [];
process.on('exit', () => {
  writeFileSync(
    join(process.env.HITS ?? '.', `${process.pid}-${threadId}`),
    JSON.stringify(Object.keys(globalThis.__hits).map(Number)),
  );
});
