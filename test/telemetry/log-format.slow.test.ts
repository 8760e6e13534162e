import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { prettyLine } from '../../src/telemetry/log.ts';
import { program as python } from '../support/process/programs.ts';
import { TYPE_SCRIPT } from '../support/process/child-program.ts';

const LOG = join(import.meta.dirname, '../../src/telemetry/log.ts');
/** Writes one line of log that contains a control character, and ends. */
const program = (format: string) => `
  import { createLog } from ${JSON.stringify(LOG)};
  const log = createLog({ LOG_LEVEL: 'info', LOG_FORMAT: ${JSON.stringify(format)} });
  log.info({ path: '/\\u001b[2J\\n\\u202e' }, 'request');
  log.flush?.();
`;
/** Runs a program on a terminal and copies its output. */
const ON_TERMINAL = 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))';

async function logged(format: string, onTerminal: boolean): Promise<string> {
  const node = [...TYPE_SCRIPT, '--input-type=module', '-e', program(format)];
  const [command, ...argv] = onTerminal
    ? ['python3', '-c', ON_TERMINAL, process.execPath, ...node]
    : [process.execPath, ...node];
  const { stdout } = await promisify(execFile)(command, argv, { timeout: 60_000 });
  return stdout;
}

test('a terminal gets lines for people, without control characters from requests', async (t) => {
  if (python(t, ['python3'], ['-c', '']) === null) return;
  const text = await logged('auto', true);
  assert.match(text, /^\d\d:\d\d:\d\d\.\d{3} INFO {2}request path="\/\\u001b\[2J\\n\\u202e"\r\n$/);
  assert.equal((JSON.parse(await logged('json', true)) as { msg: string }).msg, 'request');
});

test('a pipe gets JSON, unless configured otherwise', async () => {
  assert.equal((JSON.parse(await logged('auto', false)) as { msg: string }).msg, 'request');
  assert.match(await logged('pretty', false), /INFO {2}request path=/);
});

const START = `
  import fs from 'node:fs';
  import { createLog } from ${JSON.stringify(LOG)};
  const log = createLog({ LOG_LEVEL: 'info', LOG_FORMAT: 'json' });
`;
const inNode = (program: string) => [...TYPE_SCRIPT, '--input-type=module', '-e', START + program];

test('lines are written together, and those that wait when the process ends are written then', async () => {
  const program = `
    let writes = 0;
    const { write } = fs;
    fs.write = (...call) => (writes++, write(...call));
    for (let n = 0; n < 100; n++) {
      log.info({ n }, 'request');
      await new Promise(setImmediate);
    }
    process.on('exit', () => process.stderr.write(String(writes)));
  `;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, inNode(program), {
    timeout: 60_000,
  });
  const lines = stdout.trimEnd().split('\n');
  assert.deepEqual(
    lines.map((line) => (JSON.parse(line) as { n: number }).n),
    Array.from({ length: 100 }, (_, n) => n),
  );
  assert.ok(Number(stderr) <= 5, `${stderr} writes for ${stdout.length} bytes`);
});

test('a warning is written at once, with the lines before it, although the process hangs', async (t) => {
  const program = `
    log.info('before');
    log.warn('a warning');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  `;
  const child = spawn(process.execPath, inNode(program), { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  let text = '';
  for await (const chunk of child.stdout) {
    text += String(chunk);
    if (text.split('\n').length > 2) break;
  }
  assert.match(text, /before.*\n.*a warning/);
});

test('no text reaches the terminal with a control character', () => {
  for (const text of ['\u001b]0;x\u0007', '\u009b31m', '\u200f\u2028', '\r\nforged', '\u0000']) {
    const line = prettyLine(JSON.stringify({ level: 30, time: 0, msg: text, [text]: { [text]: [text] } }));
    assert.ok(
      !/[^\n\P{Cc}]|\p{Cf}|\p{Zl}/u.test(line) && line.indexOf('\n') === line.length - 1,
      JSON.stringify(line),
    );
  }
});
