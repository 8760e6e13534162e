import { randomBytes } from 'node:crypto';
import type { Log } from '../base/log.ts';
import type { Resource } from '../resources/query/resource.ts';
import type { Transcoder } from '../rows/rows.ts';
import type { ObjectStore } from '../store/objects.ts';
import { Beat } from './beat.ts';
import { build, type BuiltEdition } from './build.ts';
import { DeltaLog } from './delta/log.ts';
import { EditionFiles } from './edition-files.ts';
import type { Attempt, EditionMeter } from './meter.ts';
import { leavingBehind, publishHead, sweep } from './publish.ts';
import type { EditionForm } from './put-head.ts';
import { EditionLeaseLostError, type EditionRecord, type EditionRecords } from './record.ts';
import { tablesWith } from './table.ts';
import { TablePublisher } from './table-publisher.ts';

/** How often files are looked through for those that may go. Milliseconds. */
const SWEEP_MS = 10 * 60_000;
const FIRST_BACKOFF_MS = 1_000;
const LONGEST_BACKOFF_MS = 60_000;

export interface BuilderOptions {
  readonly records: EditionRecords;
  readonly objects: ObjectStore;
  readonly transcoder: Transcoder;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly leaseMs: number;
  /** Resolves after `ms` milliseconds. Rejects when the signal is aborted before that. */
  readonly pause: (ms: number, signal: AbortSignal) => Promise<unknown>;
  readonly log: Log;
  readonly meter: EditionMeter;
  readonly walkMs?: number;
}

/** An attempt of the holder of a lease. */
interface HeldLease {
  readonly token: string;
  /** Throws when the lease is over, or the server stops. */
  readonly assertHeld: () => void;
  readonly stop: AbortSignal;
}

/** A resource with editions. */
export interface EditionSource {
  readonly resource: Resource;
  readonly form: EditionForm;
  /** Milliseconds between editions. */
  readonly everyMs: number;
}

/** Makes the editions of one resource, as one of several processes that take turns by the lease in the record. */
export class EditionBuilder {
  readonly #options: BuilderOptions;
  readonly #tables: TablePublisher;
  /** When files were looked through last, by resource. */
  readonly #sweptAt = new Map<string, number>();

  constructor(options: BuilderOptions) {
    this.#options = options;
    this.#tables = new TablePublisher(new DeltaLog(options.objects), options.log);
  }

  /**
   * Makes an edition if one is due and no other process does. Resolves with milliseconds until this is to be called again.
   * A failure is logged and noted. Rejects when the record cannot be changed.
   */
  async work(source: EditionSource, stop: AbortSignal): Promise<number> {
    const { records, now, leaseMs, meter } = this.#options;
    const { name } = source.resource;
    const token = randomBytes(8).toString('hex');
    const record = await records.change(name, (one) => {
      if (dueIn(one, now()) > 0) return one;
      return { ...one, lease: { token, until: now() + leaseMs }, isAsked: false };
    });
    meter.note(name, record);
    if (record.lease?.token !== token) return dueIn(record, now());
    try {
      await this.#attempt(source, record, token, stop);
      return 0;
    } catch (error) {
      if (!(error instanceof EditionLeaseLostError)) throw error;
      return leaseMs;
    }
  }

  async #attempt(
    source: EditionSource,
    record: EditionRecord,
    token: string,
    stop: AbortSignal,
  ): Promise<void> {
    const { records, now, log, meter } = this.#options;
    const { name } = source.resource;
    const began = now();
    const attempt = meter.begin(name);
    const beat = new Beat({ ...this.#options, resource: name, lease: record.lease, token, attempt });
    const signal = AbortSignal.any([beat.lost, stop]);
    const assertHeld = () => {
      signal.throwIfAborted();
      beat.assertHeld();
    };
    const held = { token, assertHeld, stop };
    try {
      if (record.head && !record.isPublished) await this.#publish(source, record, held);
      const built = await this.#build(source, record, signal, attempt);
      attempt.walk = null;
      assertHeld();
      const committed = await records.advance(name, token, (one) => commit(one, built, source, now()));
      meter.note(name, committed);
      if (!built.isSame) await new EditionFiles(this.#options.objects, name).saveWork(null);
      await this.#publish(source, committed, held, built.isSame);
      await beat.end();
      const over = await records.advance(name, token, (one) => ({
        ...ended(one, now() - began),
        progress: null,
      }));
      meter.note(name, over);
    } catch (error) {
      await beat.end();
      const reason: unknown = signal.aborted ? signal.reason : error;
      if (reason instanceof EditionLeaseLostError) throw reason;
      if (!stop.aborted && !(error instanceof EditionLeaseLostError)) {
        meter.failed(name);
        log.warn({ resource: name, err: reason }, 'an edition could not be made');
      }
      await records.advance(name, token, (one) => failed(ended(one, now() - began), now(), stop.aborted));
    }
  }

  async #build(
    { resource, form }: EditionSource,
    record: EditionRecord,
    signal: AbortSignal,
    attempt: Attempt,
  ): Promise<BuiltEdition> {
    const { objects, transcoder, log, walkMs } = this.#options;
    const began = performance.now();
    const walk = walkMs === undefined ? {} : { walkMs };
    const built = await build(record, { resource, form, objects, transcoder, signal, attempt, ...walk });
    const { head } = built;
    const { read, stored } = attempt;
    const ms = Math.round(performance.now() - began);
    if (head.edition !== record.head?.edition)
      log.info(
        { resource: resource.name, edition: head.edition, rows: head.rows, read, stored, ms },
        'edition made',
      );
    return built;
  }

  /** What follows a commit. A kill between leaves it to the next attempt. `isSame`: only the head is another one. */
  async #publish(
    source: EditionSource,
    record: EditionRecord,
    { token, assertHeld, stop }: HeldLease,
    isSame = false,
  ): Promise<void> {
    const { objects, records, now } = this.#options;
    const { name } = source.resource;
    if (!record.head) return;
    const options = { objects, resource: name, now, assertHeld };
    await publishHead(record.head, {
      ...options,
      newest: async () => (await records.get(name, stop)).head,
    });
    if (!isSame) await this.#tables.publish(record, new EditionFiles(objects, name));
    if (now() - (this.#sweptAt.get(name) ?? -Infinity) >= SWEEP_MS) {
      this.#sweptAt.set(name, now());
      await sweep(record, options);
    }
    await records.advance(name, token, (one) => ({ ...one, isPublished: true }));
  }
}

/** Milliseconds until a process may make an edition: 0 or less when one is due. */
export function dueIn({ lease, dueAt, isAsked }: EditionRecord, now: number): number {
  return Math.max((lease?.until ?? 0) - now, isAsked ? 0 : dueAt - now);
}

function commit(
  record: EditionRecord,
  built: BuiltEdition,
  { everyMs }: EditionSource,
  now: number,
): EditionRecord {
  const { head, place, form, table } = built;
  return {
    ...record,
    head,
    place,
    form,
    tables: tablesWith(record.tables, table),
    isPublished: false,
    leaving: leavingBehind(record, head, now),
    dueAt: now + everyMs,
    progress: null,
    failures: 0,
  };
}

function ended(record: EditionRecord, lastMs: number): EditionRecord {
  return { ...record, lease: null, lastMs };
}

function failed(record: EditionRecord, now: number, isStopped: boolean): EditionRecord {
  const failures = record.failures + (isStopped ? 0 : 1);
  const backoff = Math.min(FIRST_BACKOFF_MS * 2 ** (failures - 1), LONGEST_BACKOFF_MS);
  return { ...record, failures, dueAt: isStopped ? now : now + backoff };
}
