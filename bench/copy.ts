/**
 * node bench/copy.ts URL
 *
 * Follows a feed of rows in lines of NDJSON, and keeps the last line of each row. A line of stdin that is not a URL is a
 * text to look for, and is answered at once. An empty line is answered when a row with the text has come. Rows that change
 * at about the same time come in any order, so the copy may be whole only somewhat later: the URL of a stream is answered
 * when the copy has exactly the rows of that stream.
 */
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { readStream } from './reader.ts';

const [url = ''] = process.argv.slice(2);
/** What does not come for so long is an error. */
const MOST_MS = 60_000;
const LOOK_AGAIN_MS = 20;
const LF = 0x0a;
const ROW = '{"id":"';
const ID_LENGTH = 24;

const copy = new Map<string, string>();
const state = { at: 0, lines: 0, wanted: null as string | null, found: (): void => undefined };

function take(line: string): void {
  if (!line.startsWith(ROW)) return;
  copy.set(line.slice(ROW.length, ROW.length + ID_LENGTH), line);
  state.lines++;
  state.at = performance.timeOrigin + performance.now();
  if (state.wanted === null || !line.includes(state.wanted)) return;
  state.wanted = null;
  state.found();
}

/** Calls `onLine` with each line of a body that comes in pieces. */
function splitter(onLine: (line: string) => void): (piece: Uint8Array) => void {
  let rest = Buffer.alloc(0);
  return (piece) => {
    const bytes = Buffer.concat([rest, piece]);
    let from = 0;
    for (let end = bytes.indexOf(LF); end >= 0; end = bytes.indexOf(LF, from)) {
      onLine(bytes.toString('utf8', from, end));
      from = end + 1;
    }
    rest = bytes.subarray(from);
  };
}

async function compare(stream: string): Promise<object> {
  const present = new Map<string, string>();
  await readStream(
    stream,
    'identity',
    splitter((line) => present.set(line.slice(ROW.length, ROW.length + ID_LENGTH), line)),
  );
  const isWhole = () => [...present].every(([id, line]) => copy.get(id) === line);
  const started = performance.now();
  while (!isWhole()) {
    if (performance.now() - started > MOST_MS)
      throw new Error(
        `${url}: a copy of ${copy.size} rows differs from the ${present.size} rows of ${stream}`,
      );
    await pause(LOOK_AGAIN_MS);
  }
  return { at: state.at, lines: state.lines, rows: present.size };
}

async function answer(text: string): Promise<object> {
  if (text.startsWith('http')) return compare(text);
  if (text !== '') {
    state.wanted = text;
    return { text };
  }
  await new Promise<void>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`${url} did not bring the text`)), MOST_MS);
    state.found = () => {
      clearTimeout(late);
      resolve();
    };
    if (state.wanted === null) state.found();
  });
  return { lines: state.lines };
}

await new Promise<void>((begun) => {
  const split = splitter(take);
  const follow = async (): Promise<never> => {
    await readStream(url, 'identity', (piece) => {
      begun();
      split(piece);
    });
    throw new Error(`${url} ended`);
  };
  void follow(); // a rejection ends the process
});
process.stdout.write(`${JSON.stringify({ msg: 'listening', url: null })}\n`);
for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify(await answer(line))}\n`);
process.exit(); // the feed is open
