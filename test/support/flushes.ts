/** A completed system call of a trace by `strace -f -y`. */
const CALL = /^\d+ +(\w+)\((\d+)<([^>]*)>.*= \d+$/;
/** A call that another thread's calls interrupt in the trace. */
const BEGUN = /^(\d+) +(.*) <unfinished \.\.\.>$/;
const RESUMED = /^(\d+) +<\.\.\. \w+ resumed>(.*)$/;
/** A file that is opened so that each write of it is flushed: LMDB writes its meta pages there. */
const SYNCED = /openat\(.*O_D?SYNC.*= (\d+)<([^>]*)>$/;
const FLUSHES = new Set(['fsync', 'fdatasync', 'msync']);

/**
 * The acknowledgements in a trace (lines that the traced program writes to its output, beginning with `acknowledged`) that
 * came before the file's pages were flushed, or before its meta page was written and flushed after them.
 */
export function flushFaults(trace: string, file: string): { faults: string[]; answers: number } {
  const synced = new Set<string>();
  const faults: string[] = [];
  let answers = 0;
  /** What was written since the last acknowledgement, and what of it is on disk. */
  let [pages, flushed, whole] = [0, 0, false];
  for (const line of inOneLine(trace)) {
    const opened = SYNCED.exec(line);
    if (opened?.[2] === file) synced.add(opened[1] ?? '');
    const answer = /write\(1<.*"(acknowledged [^\\"]*)/.exec(line);
    if (answer) {
      answers++;
      if (pages === 0 || flushed < pages || !whole)
        faults.push(`${answer[1]}: ${flushed} of ${pages} writes`);
      [pages, flushed, whole] = [0, 0, false];
    }
    const [, call = '', number = '', path] = CALL.exec(line) ?? [];
    if (path !== file) continue;
    if (FLUSHES.has(call)) flushed = pages;
    else if (synced.has(number)) whole = pages > 0 && flushed === pages;
    else [pages, whole] = [pages + 1, false];
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
