import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { prettyLine } from '../src/telemetry/pretty.ts';

const LOG = join(import.meta.dirname, '../src/telemetry/log.ts');
/** Writes one line of log that contains a control character, and ends. */
const program = (format: string) => `
  import { createLog } from ${JSON.stringify(LOG)};
  const log = await createLog({ LOG_LEVEL: 'info', LOG_FORMAT: ${JSON.stringify(format)} });
  log.info({ path: '/\\u001b[2J\\n\\u202e' }, 'request');
  log.flush?.();
`;
/** Runs a program on a terminal and copies its output. */
const ON_TERMINAL = 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))';

function hasPython(): Promise<boolean> {
  return promisify(execFile)('python3', ['-c', '']).then(
    () => true,
    () => false,
  );
}

async function logged(format: string, onTerminal: boolean): Promise<string> {
  const node = ['--import', 'tsx', '--input-type=module', '-e', program(format)];
  const [command, ...argv] = onTerminal
    ? ['python3', '-c', ON_TERMINAL, process.execPath, ...node]
    : [process.execPath, ...node];
  const { stdout } = await promisify(execFile)(command, argv, { timeout: 60_000 });
  return stdout;
}

test('a terminal gets lines for people, without control characters from requests', async (t) => {
  if (!(await hasPython())) {
    t.skip('there is no python3');
    return;
  }
  const text = await logged('auto', true);
  assert.match(text, /^\d\d:\d\d:\d\d\.\d{3} INFO {2}request path="\/\\u001b\[2J\\n\\u202e"\r\n$/);
  assert.equal((JSON.parse(await logged('json', true)) as { msg: string }).msg, 'request');
});

test('a pipe gets JSON, unless configured otherwise', async () => {
  assert.equal((JSON.parse(await logged('auto', false)) as { msg: string }).msg, 'request');
  assert.match(await logged('pretty', false), /INFO {2}request path=/);
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
