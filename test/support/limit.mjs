import { appendFileSync, readdirSync, readFileSync } from 'node:fs';

/**
 * Loaded before each test file: one that does not end, as something it left open keeps it alive, fails and says what that
 * is. (Node 24's runner bounds tests, but not files.) JavaScript, because it is loaded without tsx, too.
 */
if (process.env.NODE_TEST_CONTEXT && process.env.TEST_FILE_LIMIT_MS) {
  const limit = Number(process.env.TEST_FILE_LIMIT_MS);
  setTimeout(() => {
    const open = process.getActiveResourcesInfo().join(', ');
    process.stderr.write(`${process.argv[1]} did not end within ${limit} ms; open: ${open}\n`);
    killChildren();
    process.exit(1);
  }, limit).unref();
}

/**
 * The list of files with failed tests, for --again of run.ts: a process of a test file ends with another code than 0 when one
 * failed. The reporter cannot say it: to Node, a test stands in the file that calls `test`, which may be a supporting one.
 */
if (process.env.NODE_TEST_CONTEXT && process.env.TEST_FAILED_LIST && process.argv[1]?.endsWith('.test.ts')) {
  const list = process.env.TEST_FAILED_LIST;
  process.on('exit', (code) => {
    if (code !== 0) appendFileSync(list, `${process.argv[1]}\n`);
  });
}

/** One that is left would hold the output of the file open, and the runner waits for its end. Without /proc it may be left. */
function killChildren() {
  const pids = process.platform === 'linux' ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : [];
  for (const pid of pids)
    try {
      const [, parent] = /\) \w (\d+) /.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
      if (Number(parent) === process.pid) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has ended meanwhile.
    }
}
