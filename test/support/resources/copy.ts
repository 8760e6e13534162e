import assert from 'node:assert/strict';
import { get } from 'node:http';
import { crc32 } from '../../../src/pipeline/crc32.ts';

interface Tally {
  readonly cursor: string;
  readonly upToDate: boolean;
  readonly rows: number;
  readonly removed: number;
  readonly bytes: number;
  readonly crc32: string;
  readonly more?: boolean;
}

/** One answer of a feed, as a client reads it. */
export interface Answer {
  readonly status: number;
  /** The whole lines that came. */
  readonly lines: string[];
  readonly end: Tally | null;
  readonly error: { readonly code: string } | null;
  /** The body when the status is not 200. */
  readonly problem: string;
  /** Whether the answer ended cleanly. */
  readonly isWhole: boolean;
}

interface Limits {
  /** The client leaves after this number of bytes. */
  readonly bytes?: number;
  /** The client leaves when this is true, after a line. */
  readonly until?: (copy: Copy) => boolean;
}

/**
 * A client that keeps a copy of a set, by the JSON of each row's key. It applies rows and removals in their order, and
 * proves them by the counts and CRCs of checkpoints.
 */
export class Copy {
  rows = new Map<string, string>();
  cursor: string | null = null;
  isUpToDate = false;
  /** Whether it forgets what came after its last checkpoint. */
  readonly #forgets: boolean;
  #saved = new Map<string, string>();

  readonly #headers: Readonly<Record<string, string>>;

  constructor(forgets = false, headers: Readonly<Record<string, string>> = {}) {
    this.#forgets = forgets;
    this.#headers = headers;
  }

  /** The path of the next request: a stream that follows, from the last checkpoint. Without one, the copy is empty. */
  next(path: string): string {
    if (this.cursor === null) this.rows.clear();
    else if (this.#forgets) this.rows = new Map(this.#saved);
    const search = `follow=true${this.cursor === null ? '' : `&cursor=${this.cursor}`}`;
    return `${path}${path.includes('?') ? '&' : '?'}${search}`;
  }

  async read(url: string, { bytes = Infinity, until = () => false }: Limits = {}): Promise<Answer> {
    const answer = { lines: [] as string[], end: null as Tally | null, error: null as Answer['error'] };
    const sums = { rows: 0, removed: 0, bytes: 0, crc: 0 };
    let text = '';
    let left = bytes;
    this.isUpToDate = false;
    const apply = (line: string) => {
      answer.lines.push(line);
      const control = /^\{"(checkpoint|end|error)":/.exec(line)?.[1];
      if (control === undefined) this.#apply(line, sums);
      else if (control === 'error') answer.error = (JSON.parse(line) as { error: { code: string } }).error;
      else {
        const tally = (JSON.parse(line) as Record<string, Tally>)[control];
        assert.ok(tally);
        const { crc, ...counts } = sums;
        assert.deepEqual(tally, { ...tally, ...counts, crc32: crc.toString(16).padStart(8, '0') });
        this.#check(tally);
        if (control === 'end') answer.end = tally;
      }
    };
    return new Promise((resolve, reject) => {
      const request = get(url, { agent: false, headers: this.#headers });
      request.on('error', reject);
      request.on('response', (message) => {
        const { statusCode: status = 0 } = message;
        const done = () =>
          resolve({ status, ...answer, problem: status === 200 ? '' : text, isWhole: message.complete });
        message.on('error', () => undefined).on('close', done);
        message.on('data', (chunk: Buffer) => {
          if (left <= 0) return void message.destroy(); // also when `bytes` is 0
          text += chunk.subarray(0, left).toString('latin1');
          left -= chunk.length;
          if (status !== 200) return;
          const pieces = text.split('\n');
          text = pieces.pop() ?? '';
          try {
            for (const line of pieces) {
              apply(Buffer.from(line, 'latin1').toString());
              if (!until(this)) continue;
              left = 0; // also for what has come already
              return void message.destroy();
            }
          } catch (error) {
            reject(error instanceof Error ? error : new Error(String(error)));
            message.destroy();
          }
          if (left <= 0) message.destroy();
        });
      });
    });
  }

  #apply(line: string, sums: { rows: number; removed: number; bytes: number; crc: number }): void {
    const bytes = Buffer.from(`${line}\n`);
    sums.bytes += bytes.length;
    sums.crc = crc32(bytes, sums.crc);
    // A line about one of several sets names it.
    const [, set, row, rest] = /^\{"resource":"(\w+)",(?:"row":(.*)\}|(.*))$/.exec(line) ?? [];
    const [name, own] = set === undefined ? ['', line] : [`${set} `, row ?? `{${rest}`];
    const removed = /^\{"removed":\{"id":(.*)\}\}$/.exec(own)?.[1];
    if (removed !== undefined) {
      sums.removed += 1;
      this.rows.delete(name + removed);
      return;
    }
    sums.rows += 1;
    this.rows.set(name + keyOf(own), own);
  }

  #check({ cursor, upToDate }: Tally): void {
    this.cursor = cursor;
    this.isUpToDate = upToDate;
    this.#saved = new Map(this.rows);
  }
}

/** The JSON of a row's key: its first member. Keys here are strings and numbers. */
export function keyOf(line: string): string {
  const key = /^\{"_?id":("(?:[^"\\]|\\.)*"|[^,}"]+)[,}]/.exec(line)?.[1];
  assert.ok(key !== undefined, line);
  return key;
}

/** The rows of a stream, by the JSON of their keys. */
export async function rowsAt(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Map<string, string>> {
  const response = await fetch(url, { headers });
  assert.equal(response.status, 200);
  const lines = (await response.text()).split('\n').slice(0, -1);
  return new Map(lines.map((line) => [keyOf(line), line]));
}
