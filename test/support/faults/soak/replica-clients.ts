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
export interface Tally {
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
export class ReplicaClients {
  readonly tallies = new Map<string, Tally>();
  readonly #world: ReplicaWorld;
  readonly #cutters: readonly Cutter[];
  readonly #random: Random;
  /** The digest of the stable rows in each format. */
  readonly #known = new Map<string, string>();

  constructor(world: ReplicaWorld, cutters: readonly Cutter[], random: Random) {
    this.#world = world;
    this.#cutters = cutters;
    this.#random = random;
  }

  /** Reads what every whole answer must repeat. To be called while nothing goes wrong. */
  async learn(): Promise<void> {
    for (const format of FORMATS) {
      const { bytes, whole } = await this.#get(`${this.#world.urls[1]}/stable/stream?format=${format}`);
      assert.ok(whole);
      if (format === 'ndjson') assert.equal(bytes.toString().split('\n').length - 1, STABLE_ROWS);
      this.#known.set(format, digest(contentOf(format, bytes)));
    }
  }

  /** A stream in some format and coding: it ends cleanly only when it is complete. */
  readonly stream = async (): Promise<void> => {
    const [format, coding] = [oneOf(this.#random, FORMATS), oneOf(this.#random, CODINGS)];
    const cutter = oneOf(this.#random, this.#cutters);
    cutter.nextAfter = () => (this.#random() < 0.5 ? Infinity : below(this.#random, 3_000_000));
    const { bytes, whole } = await this.#get(`${cutter.url}/stable/stream?format=${format}`, coding);
    if (whole)
      assert.equal(
        digest(contentOf(format, bytes)),
        this.#known.get(format),
        `a whole ${format} in ${coding}`,
      );
    this.#count('streams', whole);
  };

  /** The rows of all pieces of a stream that is cut and goes on behind its last whole line. */
  readonly resumed = async (isOver: IsOver): Promise<void> => {
    const rows: string[] = [];
    for (;;) {
      if (isOver()) return;
      const last = rows.at(-1);
      const after = last === undefined ? '' : `?after=${(JSON.parse(last) as { id: string }).id}`;
      const cutter = oneOf(this.#random, this.#cutters);
      const coding = oneOf(this.#random, CODINGS);
      const piece = await this.#get(`${cutter.url}/stable/stream${after}`, coding).catch(() => null);
      this.#count('resumed streams', piece?.whole === true);
      if (!piece) {
        await pause(200);
        continue;
      }
      rows.push(...piece.bytes.toString().split('\n').slice(0, -1));
      if (piece.whole) break;
    }
    assert.equal(digest(Buffer.from(rows.map((row) => `${row}\n`).join(''))), this.#known.get('ndjson'));
  };

  /** A reader that takes its time, while the server's memory must stay flat. */
  readonly slow = async (isOver: IsOver): Promise<void> => {
    const headers = this.#world.headers('all');
    const answer = await fetch(`${oneOf(this.#random, this.#world.urls)}/stable/stream`, { headers });
    const pieces: Uint8Array[] = [];
    for await (const piece of answer.body ?? []) {
      pieces.push(piece as Uint8Array);
      if (isOver()) return;
      await pause(100);
    }
    if (answer.status === 200) assert.equal(digest(Buffer.concat(pieces)), this.#known.get('ndjson'));
    this.#count('slow streams', answer.status === 200);
  };

  readonly pages = async (isOver: IsOver): Promise<void> => {
    const ids: string[] = [];
    for (let cursor = ''; ;) {
      if (isOver()) return;
      const page = await this.#json<{
        data: { id: string }[];
        page: { hasMore: boolean; nextCursor: string | null };
      }>(`/stable?limit=1000&sort=n_desc${cursor}`);
      if (!page) {
        this.#count('walks of pages', false);
        await pause(200); // the same page again
        continue;
      }
      ids.push(...page.data.map(({ id }) => id));
      if (!page.page.hasMore) break;
      cursor = `&cursor=${page.page.nextCursor}`;
    }
    assert.deepEqual(ids, STABLE_IDS.toReversed());
    this.#count('walks of pages', true);
  };

  readonly parts = async (): Promise<void> => {
    const found = await this.#json<{ partitions: { url: string }[] }>('/stable/partitions?n=4');
    if (!found) {
      this.#count('sets of parts', false);
      return;
    }
    const pieces = await Promise.all(
      found.partitions.map(async ({ url }) => {
        const { bytes, whole } = await this.#get(oneOf(this.#random, this.#world.urls) + url);
        return whole ? bytes.toString() : null;
      }),
    );
    const isWhole = pieces.every((piece) => piece !== null);
    if (isWhole) assert.equal(digest(Buffer.from(pieces.join(''))), this.#known.get('ndjson'));
    this.#count('sets of parts', isWhole);
  };

  /** The own rows of a key that opens a part: never a foreign one, never a hidden field. */
  readonly part = async (): Promise<void> => {
    const path = oneOf(this.#random, ['/orders?limit=1000', '/orders/stream', '/orders/stream?format=csv']);
    const answer = await this.#get(oneOf(this.#random, this.#world.urls) + path, 'identity', 'part');
    assert.doesNotMatch(answer.bytes.toString(), /FOREIGN|margin|cost/);
    this.#count('reads of a part', answer.whole);
  };

  readonly export = async (isOver: IsOver): Promise<void> => {
    const url = oneOf(this.#random, this.#world.urls);
    const headers = { ...this.#world.headers('all'), 'content-type': 'application/json' };
    const body = JSON.stringify({ resource: 'stable', format: 'ndjson', compression: 'gzip' });
    const ordered = await fetch(`${url}/exports`, { method: 'POST', headers, body });
    if (ordered.status !== 202) {
      this.#count('exports', false);
      return;
    }
    const { id } = (await ordered.json()) as { readonly id: string };
    for (;;) {
      if (isOver()) return;
      const found = await this.#json<{ state: string }>(`/exports/${id}`);
      if (found?.state === 'complete') break;
      assert.notEqual(found?.state, 'failed');
      await pause(200);
    }
    const { bytes, whole } = await this.#get(`${url}/exports/${id}/file`);
    if (whole) assert.equal(digest(gunzipSync(bytes)), this.#known.get('ndjson'));
    this.#count('exports', whole);
  };

  /** Keeps a copy of the orders up to date until it is over, and has what the set then has. */
  async follow(name: string, copy: Copy, isOver: IsOver): Promise<void> {
    while (!isOver()) {
      const url = oneOf(this.#random, this.#world.urls);
      const bytes = below(this.#random, 60_000);
      const answer = await copy
        .read(url + copy.next('/orders/stream'), { bytes, until: isOver })
        .catch((error: unknown) => {
          if (error instanceof assert.AssertionError) throw error;
          return null; // no connection
        });
      assert.ok(answer?.status !== 410, `${name}: ${answer?.problem ?? ''}`);
      if (name === 'part')
        for (const row of copy.rows.values()) assert.doesNotMatch(row, /FOREIGN|margin|cost/);
      this.#count(`answers to the follower ${name}`, answer?.status === 200);
      if (answer?.status !== 200) await pause(200);
    }
  }

  /** Repeats what a client does. Being cut or refused is no fault: a wrong answer is. */
  async repeat(what: string, client: (isOver: IsOver) => Promise<void>, isOver: IsOver): Promise<void> {
    while (!isOver()) {
      try {
        await client(isOver);
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        this.#count(what, false);
        await pause(200);
      }
      await pause(20);
    }
  }

  #count(what: string, whole: boolean): void {
    const tally = this.tallies.get(what) ?? { whole: 0, cut: 0 };
    if (whole) tally.whole++;
    else tally.cut++;
    this.tallies.set(what, tally);
  }

  async #get(url: string, coding = 'identity', name = 'all') {
    const headers = { ...this.#world.headers(name), 'accept-encoding': coding };
    return await fetchUntilCut(url, headers);
  }

  /** Null when a server refused, or was not there. */
  async #json<T>(path: string): Promise<T | null> {
    const headers = this.#world.headers('all');
    try {
      const answer = await fetch(oneOf(this.#random, this.#world.urls) + path, { headers });
      const text = await answer.text();
      assert.ok(answer.status === 200 || answer.status >= 500, `${answer.status}: ${text}`);
      return answer.status === 200 ? (JSON.parse(text) as T) : null;
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      return null;
    }
  }
}
