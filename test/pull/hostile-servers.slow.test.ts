import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import type { RequestListener, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { program } from '../support/process/programs.ts';
import { NDJSON, proofOf, ROWS_OF_TWO, scriptedServer } from '../support/pull/pulling.ts';

const ROOT = join(import.meta.dirname, '../..');
const MIB = 1024 * 1024;
/** An attempt is given up after 2 s, and so is a set without a proved row. */
const SECONDS = 2;

/** How a client ended: its error, and the most memory that its process had. MiB. */
interface Ending {
  readonly name: string;
  readonly message: string;
  readonly memory: number;
}

const OF_NODE = `
const told = (error) => console.log(JSON.stringify({
  name: error.name, message: error.message, memory: process.resourceUsage().maxRSS / 1024 }));
const read = async (rows) => { for await (const row of rows); return { name: 'none', message: '' }; };`;

/** Programs that read a set whole, with the URL as their last argument. */
const CLIENTS: Readonly<Record<string, readonly [command: string, ...argv: string[]]>> = {
  python: [
    'python3',
    '-c',
    `import json, resource, sys
sys.path.insert(0, "clients/python/src")
import sluice_client as sluice
error = None
try:
    for row in sluice.rows(sys.argv[1], timeout=${SECONDS}, retry_for=${SECONDS}): pass
except BaseException as raised:
    error = raised
print(json.dumps({"name": type(error).__name__, "message": str(error), "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))`,
  ],
  'sluice.mjs': [
    process.execPath,
    '--input-type=module',
    '-e',
    `${OF_NODE}
const { rows } = await import('./src/web/clients/sluice.mjs');
told(await read(rows(process.argv.at(-1), { timeout: ${SECONDS}, retryFor: ${SECONDS} })).catch((error) => error));`,
  ],
  pull: [
    process.execPath,
    '--import',
    'tsx',
    '--input-type=module',
    '-e',
    `${OF_NODE}
const { pull } = await import('./src/pull/pull.ts');
const times = { idleMs: ${SECONDS * 1000}, retryForMs: ${SECONDS * 1000} };
told(await read(pull(process.argv.at(-1), times)).catch((error) => error));`,
  ],
};

async function endingOf([command, ...argv]: readonly [string, ...string[]], url: string): Promise<Ending> {
  const { stdout } = await promisify(execFile)(command, [...argv, url], { cwd: ROOT, timeout: 60_000 });
  return JSON.parse(stdout) as Ending;
}

/** Sends the same bytes again and again, as fast as they are taken. */
function flood(response: ServerResponse, part: string | Buffer): void {
  const next = () => {
    while (response.write(part));
    response.once('drain', next);
  };
  next();
}

const PROBLEM = { 'content-type': 'application/problem+json' };
const ESCAPES = '\u001b]0;owned\u0007\u001b[2J\u202e';
const EMPTY = proofOf('checkpoint', '', 0);
const WHOLE = ROWS_OF_TWO + proofOf('end', ROWS_OF_TWO, 2);

/** What a server does, the names of errors that may tell it, and the text of their messages. */
const SERVERS: Readonly<Record<string, readonly [RequestListener, names: RegExp, message: RegExp]>> = {
  'refuses with a body without an end': [
    (_, response) => flood(response.writeHead(400, PROBLEM), 'x'.repeat(MIB)),
    /Refused|BadRequest/,
    /400/,
  ],
  'is away, with a body without an end': [
    (_, response) => flood(response.writeHead(503, PROBLEM), 'x'.repeat(MIB)),
    /Interrupted/,
    /503|no row was proved/,
  ],
  'refuses with a body that is no JSON': [
    (_, response) => response.writeHead(404, PROBLEM).end('{"detail":'),
    /Refused|NotFound/,
    /404/,
  ],
  'refuses with deeply nested JSON': [
    (_, response) => response.writeHead(404, PROBLEM).end('['.repeat(60_000)),
    /Refused|NotFound/,
    /404/,
  ],
  'sends empty checkpoints without end': [
    (_, response) => flood(response.writeHead(200, NDJSON), EMPTY.repeat(1_000)),
    /Interrupted/,
    /no row was proved/,
  ],
  'sends rows without a checkpoint': [
    (_, response) => flood(response.writeHead(200, NDJSON), '{"id":1}\n'.repeat(100_000)),
    /Refused|Interrupted/,
    /128 MiB|no row was proved/,
  ],
  'sends a row without an end': [
    (_, response) => flood(response.writeHead(200, NDJSON), `{"id":"${'x'.repeat(MIB)}`),
    /Refused|Interrupted/,
    /100 MiB|no row was proved/,
  ],
  'refuses with escape sequences': [
    (_, response) => response.writeHead(400, PROBLEM).end(JSON.stringify({ detail: ESCAPES })),
    /Refused|BadRequest/,
    /owned/,
  ],
  'gives up with escape sequences': [
    (_, response) =>
      response.writeHead(200, NDJSON).end(`${JSON.stringify({ error: { status: 400, detail: ESCAPES } })}\n`),
    /Refused|BadRequest/,
    /owned/,
  ],
  'sends a line of escape sequences': [
    (_, response) => response.writeHead(200, NDJSON).end(`${ESCAPES}\n`),
    /Interrupted/,
    /neither a row/,
  ],
  'sends deeply nested control lines': [
    (_, response) => response.writeHead(200, NDJSON).end(`${'['.repeat(60_000)}\n`),
    /Interrupted/,
    /neither a row/,
  ],
};

for (const [client, argv] of Object.entries(CLIENTS)) {
  for (const [what, [listener, names, message]] of Object.entries(SERVERS))
    test(`${client}: a server that ${what} is told, and takes little memory`, async (t) => {
      if (program(t, [argv[0]], ['--version']) === null) return;
      const { url } = await scriptedServer(t, [listener]);
      const ending = await endingOf(argv, url);
      t.diagnostic(`${ending.memory.toFixed(0)} MiB: ${ending.message.slice(0, 100)}`);
      assert.match(ending.name, names, ending.message);
      assert.match(ending.message, message);
      assert.doesNotMatch(ending.message, /[\p{Cc}\p{Cf}]/u);
      assert.ok(ending.message.length < 4_000);
      assert.ok(ending.memory < 500, `${ending.memory} MiB`);
    });

  for (const status of [301, 302, 303, 307, 308])
    test(`${client}: a redirect (${status}) to another origin is refused`, async (t) => {
      if (program(t, [argv[0]], ['--version']) === null) return;
      const other = await scriptedServer(t, [(_, response) => response.writeHead(200, NDJSON).end(WHOLE)]);
      const { url } = await scriptedServer(t, [
        (_, response) => response.writeHead(status, { location: other.url }).end(),
      ]);
      const ending = await endingOf(argv, url);
      assert.match(`${ending.name}: ${ending.message}`, /^Refused: .*redirect/);
      assert.deepEqual(other.asked, []);
    });
}
