import { AppError } from '../errors.ts';
import type { Transcoder } from '../rows/rows.ts';
import { orRelease, type Batch } from '../store/batch.ts';
import { chain, FIRST_BATCH } from '../stream/chain.ts';
import type { FileStore } from '../store/files.ts';
import type { Identity, Plan } from '../store/store.ts';
import { prefetch } from './prefetch.ts';
import { ExportFile } from './file.ts';
import { fileCodec } from './file-codec.ts';
import {
  fileName,
  type FinishedFile,
  type Kept,
  type Progress,
  type Running,
  type StoredStart,
  type Time,
} from './job.ts';
import { rowWriter } from './row-writer.ts';
import type { SegmentWriter } from './segment-writer.ts';
import { segmentsOf, type Segment } from './segments.ts';
import { sourceOf, type ExportSource, type ExportSources } from './source.ts';

/** The number of segments in progress: one is encoded or written while another is compressed. */
const DEPTH = 2;

export interface ScanOptions {
  readonly sources: ExportSources;
  readonly transcoder: Transcoder;
  readonly files: FileStore;
}

/**
 * One attempt at a job: reads the chain of all its batches and writes the file. It continues behind the last
 * row kept. The rows in the file are byte for byte the same as without an interruption. `sync` resolves with
 * the part that would survive a crash.
 */
export class Scan {
  readonly #job: Running;
  readonly #options: ScanOptions;
  #file: ExportFile | null = null;
  #columns: readonly string[] | null;
  #kept: Kept | null;
  #time: Time;
  #identity: Identity | null;
  #changes: StoredStart | null;
  #estimatedRows: number | null;

  constructor(job: Running, options: ScanOptions) {
    this.#job = job;
    this.#options = options;
    this.#columns = job.columns;
    this.#kept = job.kept;
    this.#time = job.time;
    this.#identity = job.identity;
    this.#changes = job.changes;
    this.#estimatedRows = job.estimatedRows;
  }

  /** Makes what is written so far durable, and resolves with the progress up to there. */
  async sync(): Promise<Progress> {
    const { progress } = this;
    await this.#file?.sync();
    return progress;
  }

  get progress(): Progress {
    return {
      time: this.#time,
      identity: this.#identity,
      changes: this.#changes,
      estimatedRows: this.#estimatedRows,
      columns: this.#columns,
      kept: this.#kept,
    };
  }

  /**
   * Estimates the number of rows. Nothing depends on the estimate, so an AppError is ignored here: the scan
   * itself meets a store that is unavailable.
   */
  async estimate(signal: AbortSignal): Promise<void> {
    if (this.#estimatedRows !== null) return;
    try {
      const { request } = this.#job;
      const source = this.#source();
      const { rows } = await source.rows.count(await source.planOf(request, signal), 'estimated', signal);
      this.#estimatedRows = rows;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
    }
  }

  /**
   * Writes the file to its end. Rejects with the error of the store or of the files, or with the signal's
   * reason.
   */
  async run(signal: AbortSignal): Promise<FinishedFile> {
    const file = await this.#begin();
    const codec = fileCodec(this.#job.request, this.#options.files);
    try {
      let rows = this.#kept?.rows ?? 0;
      if (rows === 0) await file.write(codec.head);
      const pieces = prefetch(this.#segments(signal), DEPTH, async (segment) => ({
        ...segment,
        piece: await codec.compress(segment.text),
      }));
      for await (const { piece, rows: added, bookmark, bodies } of pieces) {
        signal.throwIfAborted();
        await file.write(piece);
        rows += added;
        const { name, bytes, crc32 } = file;
        if (bookmark) this.#kept = { name, bytes, crc32, rows, bookmark, ...(bodies && { bodies }) };
      }
      await file.write(await codec.tail(file, { rows, columns: this.#columns }));
      return await file.finish(rows);
    } finally {
      await Promise.all([codec.close(), file.close()]);
    }
  }

  /**
   * Opens this attempt's file, beginning with the bytes kept by an earlier attempt. The file is empty when
   * those are gone.
   */
  async #begin(): Promise<ExportFile> {
    const { files } = this.#options;
    const name = fileName(this.#job.id, this.#job.lease.token);
    const kept = this.#kept;
    this.#file = kept && (await ExportFile.continue(files, name, kept));
    this.#kept = this.#file && kept && { ...kept, name };
    return (this.#file ??= await ExportFile.create(files, name));
  }

  async *#segments(signal: AbortSignal): AsyncGenerator<Segment, void, undefined> {
    const { request } = this.#job;
    const source = this.#source();
    const { streams } = source;
    // The collection is determined before the time. The collection at that time is then never another one.
    const own = await this.#collection(source, signal);
    const asked = await source.planOf(request, signal);
    const timed: Plan = { ...asked, ...own, ...(await this.#pointInTime(source, signal)) };
    const kept = this.#kept;
    const plan = { ...timed, ...(await this.#start(source, timed, signal)) };
    const first = await streams.read(plan, kept ? { after: kept.bookmark } : {}, FIRST_BATCH, signal);
    const writer = await orRelease(first, () => this.#writer(source, plan, first, signal));
    try {
      yield* segmentsOf(chain(streams, plan, first, Infinity, signal), writer, plan);
    } finally {
      writer.close();
    }
  }

  /** The collection, which is the same for all reads of all attempts. */
  async #collection({ rows }: ExportSource, signal: AbortSignal): Promise<Pick<Plan, 'identity'>> {
    this.#identity ??= (await rows.identity(signal)) ?? null;
    return this.#identity === null ? {} : { identity: this.#identity };
  }

  /**
   * The point in time, which is the same for all reads of all attempts. Empty where the store has no
   * snapshots.
   */
  async #pointInTime({ rows }: ExportSource, signal: AbortSignal): Promise<Pick<Plan, 'at'>> {
    if (this.#time === 'undecided') {
      const present = await rows.pointInTime(signal);
      this.#time = present === null ? 'live' : `${present}`;
    }
    return this.#time === 'live' ? {} : { at: BigInt(this.#time) };
  }

  /**
   * Decides from where changes follow, before the first row is read. Rows that an earlier attempt kept were read after
   * the place that it chose, so that place remains. What a plan needs to see every change before the place.
   */
  async #start({ changesFrom }: ExportSource, plan: Plan, signal: AbortSignal): Promise<Pick<Plan, 'since'>> {
    if (this.#kept === null) {
      const start = await changesFrom(plan, signal);
      const { since } = start?.bounds ?? {};
      this.#changes = start && { cursor: start.cursor, since: since === undefined ? null : `${since}` };
    }
    const since = plan.at === undefined ? this.#changes?.since : null;
    return typeof since === 'string' ? { since: BigInt(since) } : {};
  }

  async #writer(source: ExportSource, plan: Plan, first: Batch, signal: AbortSignal): Promise<SegmentWriter> {
    const { request } = this.#job;
    const { transcoder } = this.#options;
    const [kept, known] = [this.#kept, this.#columns];
    const { writer, columns } = await rowWriter(
      { request, source, transcoder, plan, first, kept, columns: known },
      signal,
    );
    this.#columns = columns;
    return writer;
  }

  /** Throws AppError `not-found` when the resource is no longer declared. */
  #source(): ExportSource {
    return sourceOf(this.#job.request, this.#options.sources);
  }
}
