import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import type { EditionHead } from '../../../src/base/edition/head.ts';
import { nameText } from '../../../src/base/edition/names.ts';
import { EditionBuilder, type EditionSource } from '../../../src/editions/builder.ts';
import { EditionMeter } from '../../../src/editions/meter.ts';
import { EditionFiles } from '../../../src/editions/edition-files.ts';
import { EDITIONS, EditionRecords } from '../../../src/editions/record.ts';
import { crc32 } from '../../../src/pipeline/crc32.ts';
import { createTranscoder } from '../../../src/rows/transcoder.ts';
import { openForm } from '../../../src/resources/query/form.ts';
import type { Resource } from '../../../src/resources/query/resource.ts';
import type { Collection, RowReader, Snapshot } from '../../../src/store/collection.ts';
import type { Slots } from '../../../src/store/turns/slots.ts';
import type { Handle } from '../exports/export-worker.ts';
import { itemsOf } from '../resources/items-resource.ts';
import { withOverrides } from '../store/with-overrides.ts';
import { MemoryObjects } from './memory-objects.ts';

export const HOUR_MS = 60 * 60_000;
const PLAN = { sort: '_id', direction: 1 } as const;
const ALL = { rows: 100_000, bytes: 1 << 28 };

/** What happens between the steps of making an edition. */
export interface Hooks {
  /** After a state was taken. May replace it. */
  readonly snapshot?: (state: Snapshot) => Snapshot | Promise<Snapshot>;
  readonly changes?: Collection['changes'];
  readonly reads?: () => void | Promise<void>;
}

/** The builder of one process, whose clock and steps a test has in its hands. */
export class EditionMaker {
  readonly records: EditionRecords;
  readonly builder: EditionBuilder;
  readonly meter = new EditionMeter();
  hooks: Hooks = {};
  /** Milliseconds. */
  time = Date.now();
  /** All rows of the last state that was taken, as NDJSON. */
  state = Buffer.alloc(0);
  readonly warnings: unknown[] = [];
  readonly errors: unknown[] = [];
  /** The kinds of fields that the resource declares. */
  kinds: Resource['kinds'] = new Map();
  #beat: () => void = () => undefined;
  readonly #objects: MemoryObjects;
  readonly #resource: Resource;
  readonly #slots: Slots;

  private constructor(handle: Handle, objects: MemoryObjects, records: EditionRecords, walkMs: number) {
    this.#objects = objects;
    this.#slots = handle.slots;
    this.records = records;
    const { items } = handle.store;
    const rows = withOverrides(items, {
      snapshot: async (signal) => {
        assert.ok(items.snapshot);
        const state = await items.snapshot(signal);
        this.state = await this.#textOf(state.rows, signal);
        return (await this.hooks.snapshot?.(state)) ?? state;
      },
    });
    Object.defineProperty(rows, 'changes', { get: () => this.hooks.changes ?? items.changes });
    const reader =
      (of: Pick<RowReader, 'read'>): RowReader['read'] =>
      async (...call) => {
        await this.hooks.reads?.();
        return of.read(...call);
      };
    const { resource } = itemsOf({ items: rows, name: handle.store.name }, (of) => ({
      read: reader(of),
      begin: reader(of),
    }));
    this.#resource = resource;
    this.builder = new EditionBuilder({
      records,
      objects,
      transcoder: createTranscoder(handle.slots),
      now: () => this.time,
      leaseMs: 10_000,
      pause: async (_ms, signal) => {
        const goesOn = await new Promise<boolean>((resolve) => {
          this.#beat = () => resolve(true);
          if (signal.aborted) resolve(false);
          else signal.addEventListener('abort', () => resolve(false));
        });
        if (!goesOn) throw new Error('over');
      },
      log: {
        info: () => undefined,
        warn: (what) => this.warnings.push(what),
        error: (what) => this.errors.push(what),
      },
      meter: this.meter,
      walkMs,
    });
  }

  static async open(handle: Handle, objects: MemoryObjects, walkMs = 0): Promise<EditionMaker> {
    return new EditionMaker(
      handle,
      objects,
      new EditionRecords(await handle.store.records(EDITIONS)),
      walkMs,
    );
  }

  /** Makes an edition now, or fails to. */
  async make(own: Partial<EditionSource['form']> = {}, stop = new AbortController().signal): Promise<void> {
    this.time += HOUR_MS / 4;
    await this.builder.work(this.source(own), stop);
  }

  source(own: Partial<EditionSource['form']> = {}): EditionSource {
    const form = { formats: ['ndjson.gz'], target: 700, keep: 3, filesAt: 'chunks/', ...own } as const;
    const open = this.kinds.size > 0 ? { form: openForm('items') } : undefined; // a closed form has no kinds
    const resource: Resource = { ...this.#resource, ...open, kinds: this.kinds };
    return { resource, form, everyMs: 1 };
  }

  /** Lets the attempt under way renew its lease. */
  beat(): void {
    this.#beat();
  }

  async head(): Promise<EditionHead | null> {
    return (await this.records.get('items', new AbortController().signal)).head;
  }

  async #textOf(reader: RowReader, signal: AbortSignal): Promise<Buffer<ArrayBuffer>> {
    const batch = await reader.read(PLAN, {}, ALL, signal);
    const encoder = createTranscoder(this.#slots).encoder('lines');
    try {
      assert.equal(batch.more, false);
      return Buffer.concat([...encoder.encode(batch, 65_536)].map((chunk) => Buffer.from(chunk)));
    } finally {
      encoder.close();
      batch.release();
    }
  }

  files(): EditionFiles {
    return new EditionFiles(this.#objects, 'items');
  }
}

/** Asserts that all files of an edition are there, are what their names say, and have the sums of the head. Returns the rows. */
export async function rowsOfEdition(head: EditionHead, files: EditionFiles): Promise<Buffer> {
  const { chunks, paths } = await files.contents(head);
  for (const path of paths) assert.notEqual(await files.objects.size(path), null, path);
  const texts: Buffer[] = [];
  for (const { name, rows, bytes, sizes } of chunks) {
    const file = await files.objects.get(files.pathOf(`${name}.ndjson.gz`));
    assert.equal(file?.length, sizes['ndjson.gz']);
    const text = gunzipSync(file ?? '');
    assert.equal(sha256(text), name);
    assert.equal(text.length, bytes);
    assert.equal(text.toString().split('\n').length - 1, rows);
    texts.push(text);
  }
  const all = Buffer.concat(texts);
  assert.equal(all.length, head.bytes);
  assert.equal(crc32(all).toString(16).padStart(8, '0'), head.crc32);
  assert.equal(head.rows, all.toString().split('\n').length - 1);
  assert.equal(sha256(nameText(chunks.map(({ name }) => name))), head.edition);
  return all;
}

export function sha256(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}
