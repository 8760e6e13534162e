/** A completed system call of a trace by `strace -f -y`. */
const CALL = /^\d+ +(\w+)\((\d+)<([^>]*)>.*= \d+$/;
/** A call that another thread's calls interrupt in the trace. */
const BEGUN = /^(\d+) +(.*) <unfinished \.\.\.>$/;
const RESUMED = /^(\d+) +<\.\.\. \w+ resumed>(.*)$/;
const FLUSHES = new Set(['fsync', 'fdatasync']);

/**
 * The acknowledgements in a trace (lines that the traced program writes to its output, beginning with `acknowledged`) that
 * came before what was written to the file was flushed.
 */
export function flushFaults(trace: string, file: string): { faults: string[]; answers: number } {
  const faults: string[] = [];
  let answers = 0;
  /** What was written since the last acknowledgement, and what of it is on disk. */
  let writes = 0;
  let flushed = 0;
  for (const line of inOneLine(trace)) {
    const answer = /write\(1<.*"(acknowledged [^\\"]*)/.exec(line);
    if (answer) {
      answers++;
      if (writes === 0 || flushed < writes) faults.push(`${answer[1]}: ${flushed} of ${writes} writes`);
      writes = 0;
      flushed = 0;
    }
    const [, call = '', , path] = CALL.exec(line) ?? [];
    if (path !== file) continue;
    if (FLUSHES.has(call)) flushed = writes;
    else writes++;
  }
  return { faults, answers };
}

/** The calls of a trace, each in one line: where it ended. */
function inOneLine(trace: string): string[] {
  const begun = new Map<string, string>();
  return trace.split('\n').flatMap((line) => {
    const [, thread = '', start] = BEGUN.exec(line) ?? [];
    if (start !== undefined) {
      begun.set(thread, start);
      return [];
    }
    const [, resumed = '', end] = RESUMED.exec(line) ?? [];
    return [end === undefined ? line : `${resumed} ${begun.get(resumed) ?? ''}${end}`];
  });
}
