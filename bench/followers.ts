/**
 * node bench/followers.ts URL COUNT
 *
 * Follows a feed on COUNT connections. It is a process of its own, because a process that measures something else must
 * not do this work as well. A line of stdin is a text to look for, and is answered at once. An empty line is answered
 * when every connection has received the text: with the time, in milliseconds since 1970, and the bytes of all.
 */
import { createInterface } from 'node:readline';
import { Finder } from '../src/load/finder.ts';
import { Connection } from '../src/load/http/connection.ts';

const [address = '', count = ''] = process.argv.slice(2);
const url = new URL(address);
/** The number of connections opened at the same time. The queue of a listening socket is limited. */
const AT_ONCE = 50;
/** Followers that a text does not reach for so long are an error. */
const MOST_MS = 60_000;
const REQUEST = `GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nAccept: application/x-ndjson\r\nAccept-Encoding: identity\r\n\r\n`;

const state = { bytes: 0, missing: 0, reached: (): void => undefined };

class Follower {
  readonly begun: Promise<void>;
  #finder: Finder | null = null;

  constructor() {
    this.begun = new Promise((begun) => {
      new Connection(url).send(REQUEST, {
        onHead: ({ status }) => {
          if (status !== 200) throw new Error(`${address} answered ${status}`);
        },
        onBody: (piece) => {
          begun();
          this.#take(piece);
        },
        onEnd: () => {
          throw new Error(`${address} ended`);
        },
        onCut: (reason) => {
          throw reason;
        },
      });
    });
  }

  look(text: string): void {
    this.#finder = new Finder(text);
  }

  #take(piece: Uint8Array): void {
    state.bytes += piece.length;
    if (!this.#finder?.isIn(piece)) return;
    this.#finder = null;
    if (--state.missing === 0) state.reached();
  }
}

async function answer(text: string, followers: readonly Follower[]): Promise<object> {
  if (text !== '') {
    state.missing = followers.length;
    for (const follower of followers) follower.look(text);
    return { text };
  }
  await new Promise<void>((resolve, reject) => {
    const late = setTimeout(
      () => reject(new Error(`${state.missing} of ${count} followers of ${address} were not reached`)),
      MOST_MS,
    );
    state.reached = () => {
      clearTimeout(late);
      resolve();
    };
    if (state.missing === 0) state.reached();
  });
  return { at: performance.timeOrigin + performance.now(), bytes: state.bytes };
}

const followers: Follower[] = [];
while (followers.length < Number(count)) {
  const some = Array.from(
    { length: Math.min(AT_ONCE, Number(count) - followers.length) },
    () => new Follower(),
  );
  followers.push(...some);
  await Promise.all(some.map(({ begun }) => begun));
}
process.stdout.write(`${JSON.stringify({ msg: 'listening', url: null })}\n`);
for await (const line of createInterface({ input: process.stdin }))
  process.stdout.write(`${JSON.stringify(await answer(line, followers))}\n`);
process.exit(); // the sockets are open
