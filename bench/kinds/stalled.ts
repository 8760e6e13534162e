import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { load } from '../load.ts';
import type { Round } from '../results.ts';
import { memoryOf, startUsage } from '../usage.ts';
import { withFresh } from './fresh.ts';
import { pidsOf, urlOf, type Job, type Kind } from './kind.ts';
import { untilAtRest } from './rest.ts';

/** Readers that begin a stream and take nothing more, while other clients request pages. Counts pages. */
export interface StalledScenario {
  readonly kind: 'stalled';
  readonly stream: string;
  readonly page: string;
  readonly readers: number;
  readonly connections: number;
}

/** The number of connections opened at the same time. The queue of a listening socket is limited. */
const AT_ONCE = 50;
/** A reader that is refused more often than this gives up. */
const MOST_REFUSALS = 20;
/** A server at rest gives memory back within some seconds, and readers stall for minutes. */
const SETTLED_MS = 5_000;

export const stalled: Kind<StalledScenario> = {
  async check(job) {
    const { stream, page } = job.scenario;
    const response = await fetch(urlOf(job) + page);
    const { data } = (await response.json()) as { data: readonly unknown[] };
    const reader = await stall(new URL(urlOf(job) + stream));
    reader.destroy();
    return { text: JSON.stringify(data), rows: data.length, bytes: 0 };
  },

  measure(job) {
    return withFresh(job.subject, (subject) => observe({ ...job, subject }));
  },
};

async function observe(job: Job<StalledScenario>): Promise<Round> {
  const { scenario, subject, ground, effort } = job;
  const url = urlOf(job);
  const ask = { url: url + scenario.page, connections: scenario.connections, until: effort };
  const alone = await load(ask);
  const memoryBefore = memoryOf(subject.process.pid, 'RssAnon');
  const cursorsBefore = await ground.openCursors();
  const readers = await stallAll(new URL(url + scenario.stream), Math.ceil(scenario.readers * effort.share));
  try {
    await untilAtRest(subject.process.pid);
    await sleep(SETTLED_MS);
    const held = memoryOf(subject.process.pid, 'RssAnon') - memoryBefore;
    const cursors = (await ground.openCursors()) - cursorsBefore;
    const endUsage = startUsage(pidsOf(job));
    const beside = await load(ask);
    const usage = endUsage();
    await Promise.all(readers.map(leave));
    await untilAtRest(subject.process.pid);
    await sleep(SETTLED_MS);
    const kept = memoryOf(subject.process.pid, 'RssAnon') - memoryBefore;
    return {
      seconds: beside.seconds,
      count: beside.requests,
      usage,
      latency: beside.latency,
      figures: {
        readers: readers.length,
        kibPerReader: held / 1024 / readers.length,
        keptMB: kept / 1e6,
        cursors,
        aloneP99Ms: alone.latency.p99,
        alonePerSecond: alone.requests / alone.seconds,
      },
    };
  } finally {
    await Promise.all(readers.map(leave));
  }
}

async function stallAll(url: URL, count: number): Promise<Socket[]> {
  const readers: Socket[] = [];
  while (readers.length < count) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - readers.length) }, () => stall(url));
    readers.push(...(await Promise.all(some)));
  }
  return readers;
}

/**
 * Opens a reader that takes the first bytes and no more. When it is refused for now (503), it tries again
 * after the time in Retry-After.
 */
async function stall(url: URL): Promise<Socket> {
  for (let refused = 0; ; refused++) {
    const { socket, head } = await firstOf(url);
    const status = head.slice(9, 12);
    if (status === '200') return socket;
    socket.destroy();
    if (status !== '503' || refused === MOST_REFUSALS)
      throw new Error(`a stream answered ${head.slice(0, 40)}`);
    const seconds = Number(/^retry-after: (\d+)/im.exec(head)?.[1] ?? 1);
    await sleep(seconds * 1000);
  }
}

async function firstOf(url: URL): Promise<{ socket: Socket; head: string }> {
  const socket = connect({ host: url.hostname, port: Number(url.port) });
  socket.write(
    `GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nAccept-Encoding: identity\r\n\r\n`,
  );
  const [first] = (await once(socket, 'data')) as [Buffer];
  socket.pause();
  socket.on('error', () => undefined); // the server may cut a stalled reader
  return { socket, head: first.toString('latin1', 0, 1000) };
}

async function leave(socket: Socket): Promise<void> {
  if (socket.closed) return;
  const closed = once(socket, 'close');
  socket.resetAndDestroy();
  await closed;
}
