import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { arrowMessages, arrowRows } from '../../resources/arrow.ts';
import type { Copy } from '../../resources/copy.ts';
import { fetchUntilCut, type Cutter } from '../cutter.ts';
import { below, oneOf, type Random } from '../../store/random-collection.ts';
import { STABLE_IDS, STABLE_ROWS, type ReplicaWorld } from './replica-world.ts';

const FORMATS = ['ndjson', 'json', 'csv', 'arrow'] as const;
const CODINGS = ['identity', 'gzip', 'br'] as const;

/** How often clients had what they asked for, and how often they were cut or refused. */
interface Tally {
  whole: number;
  cut: number;
}

/** Whether the time of the clients is over. */
type IsOver = () => boolean;

/** What every whole answer in a format has: its bytes, or the ids of Arrow, whose batches may be cut anywhere. */
function contentOf(format: (typeof FORMATS)[number], bytes: Buffer): Buffer {
  if (format !== 'arrow') return bytes;
  try {
    return Buffer.from(JSON.stringify(arrowRows(arrowMessages(bytes).slice(1), ['text'])));
  } catch (error) {
    return assert.fail(`a clean end of a broken Arrow stream: ${String(error)}`);
  }
}

const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/** The clients of a world. `cutters` are proxies before its servers, in their order. */
export function replicaClients(world: ReplicaWorld, cutters: readonly Cutter[], random: Random) {
  const tallies = new Map<string, Tally>();
  /** The digest of the stable rows in each format. */
  const known = new Map<string, string>();

  const count = (what: string, whole: boolean): void => {
    const tally = tallies.get(what) ?? { whole: 0, cut: 0 };
    if (whole) tally.whole++;
    else tally.cut++;
    tallies.set(what, tally);
  };
  const get = (url: string, coding = 'identity', name = 'all') =>
    fetchUntilCut(url, { ...world.headers(name), 'accept-encoding': coding });
  /** Null when a server refused, or was not there. */
  const json = async <T>(path: string): Promise<T | null> => {
    const headers = world.headers('all');
    try {
      const answer = await fetch(oneOf(random, world.urls) + path, { headers });
      const text = await answer.text();
      assert.ok(answer.status === 200 || answer.status >= 500, `${answer.status}: ${text}`);
      return answer.status === 200 ? (JSON.parse(text) as T) : null;
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      return null;
    }
  };
  return {
    tallies,
    /** Reads what every whole answer must repeat. To be called while nothing goes wrong. */
    learn: async (): Promise<void> => {
      for (const format of FORMATS) {
        const { bytes, whole } = await get(`${world.urls[1]}/stable/stream?format=${format}`);
        assert.ok(whole);
        if (format === 'ndjson') assert.equal(bytes.toString().split('\n').length - 1, STABLE_ROWS);
        known.set(format, digest(contentOf(format, bytes)));
      }
    },

    /** A stream in some format and coding: it ends cleanly only when it is complete. */
    stream: async (): Promise<void> => {
      const format = oneOf(random, FORMATS);
      const coding = oneOf(random, CODINGS);
      const cutter = oneOf(random, cutters);
      cutter.nextAfter = () => (random() < 0.5 ? Infinity : below(random, 3_000_000));
      const { bytes, whole } = await get(`${cutter.url}/stable/stream?format=${format}`, coding);
      if (whole)
        assert.equal(digest(contentOf(format, bytes)), known.get(format), `a whole ${format} in ${coding}`);
      count('streams', whole);
    },

    /** The rows of all pieces of a stream that is cut and goes on behind its last whole line. */
    resumed: async (isOver: IsOver): Promise<void> => {
      const rows: string[] = [];
      for (;;) {
        if (isOver()) return;
        const last = rows.at(-1);
        const after = last === undefined ? '' : `?after=${(JSON.parse(last) as { id: string }).id}`;
        const cutter = oneOf(random, cutters);
        const coding = oneOf(random, CODINGS);
        const piece = await get(`${cutter.url}/stable/stream${after}`, coding).catch(() => null);
        count('resumed streams', piece?.whole === true);
        if (!piece) {
          await pause(200);
          continue;
        }
        rows.push(...piece.bytes.toString().split('\n').slice(0, -1));
        if (piece.whole) break;
      }
      assert.equal(digest(Buffer.from(rows.map((row) => `${row}\n`).join(''))), known.get('ndjson'));
    },

    /** A reader that takes its time, while the server's memory must stay flat. */
    slow: async (isOver: IsOver): Promise<void> => {
      const headers = world.headers('all');
      const answer = await fetch(`${oneOf(random, world.urls)}/stable/stream`, { headers });
      const pieces: Uint8Array[] = [];
      for await (const piece of answer.body ?? []) {
        pieces.push(piece as Uint8Array);
        if (isOver()) return;
        await pause(100);
      }
      if (answer.status === 200) assert.equal(digest(Buffer.concat(pieces)), known.get('ndjson'));
      count('slow streams', answer.status === 200);
    },

    pages: async (isOver: IsOver): Promise<void> => {
      const ids: string[] = [];
      for (let cursor = ''; ;) {
        if (isOver()) return;
        const page = await json<{
          data: { id: string }[];
          page: { hasMore: boolean; nextCursor: string | null };
        }>(`/stable?limit=1000&sort=n_desc${cursor}`);
        if (!page) {
          count('walks of pages', false);
          await pause(200); // the same page again
          continue;
        }
        ids.push(...page.data.map(({ id }) => id));
        if (!page.page.hasMore) break;
        cursor = `&cursor=${page.page.nextCursor}`;
      }
      assert.deepEqual(ids, STABLE_IDS.toReversed());
      count('walks of pages', true);
    },

    parts: async (): Promise<void> => {
      const found = await json<{ partitions: { url: string }[] }>('/stable/partitions?n=4');
      if (!found) {
        count('sets of parts', false);
        return;
      }
      const pieces = await Promise.all(
        found.partitions.map(async ({ url }) => {
          const { bytes, whole } = await get(oneOf(random, world.urls) + url);
          return whole ? bytes.toString() : null;
        }),
      );
      const isWhole = pieces.every((piece) => piece !== null);
      if (isWhole) assert.equal(digest(Buffer.from(pieces.join(''))), known.get('ndjson'));
      count('sets of parts', isWhole);
    },

    /** The own rows of a key that opens a part: never a foreign one, never a hidden field. */
    part: async (): Promise<void> => {
      const path = oneOf(random, ['/orders?limit=1000', '/orders/stream', '/orders/stream?format=csv']);
      const answer = await get(oneOf(random, world.urls) + path, 'identity', 'part');
      assert.doesNotMatch(answer.bytes.toString(), /FOREIGN|margin|cost/);
      count('reads of a part', answer.whole);
    },

    export: async (isOver: IsOver): Promise<void> => {
      const url = oneOf(random, world.urls);
      const headers = { ...world.headers('all'), 'content-type': 'application/json' };
      const body = JSON.stringify({ resource: 'stable', format: 'ndjson', compression: 'gzip' });
      const ordered = await fetch(`${url}/exports`, { method: 'POST', headers, body });
      if (ordered.status !== 202) {
        count('exports', false);
        return;
      }
      const { id } = (await ordered.json()) as { readonly id: string };
      for (;;) {
        if (isOver()) return;
        const found = await json<{ state: string }>(`/exports/${id}`);
        if (found?.state === 'complete') break;
        assert.notEqual(found?.state, 'failed');
        await pause(200);
      }
      const { bytes, whole } = await get(`${url}/exports/${id}/file`);
      if (whole) assert.equal(digest(gunzipSync(bytes)), known.get('ndjson'));
      count('exports', whole);
    },

    /** Keeps a copy of the orders up to date until it is over, and has what the set then has. */
    follow: async (name: string, copy: Copy, isOver: IsOver): Promise<void> => {
      while (!isOver()) {
        const url = oneOf(random, world.urls);
        const bytes = below(random, 60_000);
        const answer = await copy
          .read(url + copy.next('/orders/stream'), { bytes, until: isOver })
          .catch((error: unknown) => {
            if (error instanceof assert.AssertionError) throw error;
            return null; // no connection
          });
        assert.ok(answer?.status !== 410, `${name}: ${answer?.problem ?? ''}`);
        if (name === 'part')
          for (const row of copy.rows.values()) assert.doesNotMatch(row, /FOREIGN|margin|cost/);
        count(`answers to the follower ${name}`, answer?.status === 200);
        if (answer?.status !== 200) await pause(200);
      }
    },

    /** Repeats what a client does. Being cut or refused is no fault: a wrong answer is. */
    repeat: async (
      what: string,
      client: (isOver: IsOver) => Promise<void>,
      isOver: IsOver,
    ): Promise<void> => {
      while (!isOver()) {
        try {
          await client(isOver);
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error;
          count(what, false);
          await pause(200);
        }
        await pause(20);
      }
    },
  };
}
