import { AppError } from '../base/errors.ts';
import type { ChunkEntry, EditionHead } from '../base/edition/head.ts';
import type { Resource } from '../resources/query/resource.ts';
import { placeBefore } from '../resources/token/feed-cursor.ts';
import type { Transcoder } from '../rows/rows.ts';
import type { ChangeFeed } from '../store/change-feed.ts';
import type { ObjectStore } from '../store/objects.ts';
import type { Plan } from '../store/plan.ts';
import { ChunkFiles } from './chunk-files.ts';
import { DeltaLines } from './delta-lines.ts';
import { EditionFiles, type Work } from './edition-files.ts';
import { parquetOf } from './delta/parquet.ts';
import type { Attempt } from './meter.ts';
import { cursorOf, keptBehind, putHead, sumOf, type EditionForm } from './put-head.ts';
import { Ranges } from './ranges.ts';
import { EditionReader } from './reader.ts';
import { placeOf, placeText, type EditionRecord, type EditionTable, type KeptPlace } from './record.ts';
import { tableFor } from './table.ts';
import { withoutChanges } from './unchanged.ts';

const BY_ID: Plan = { sort: '_id', direction: 1 };
/** Where the changes since the last edition are lost. All rows are read again. */
const LOST: ReadonlySet<string> = new Set(['changes-expired', 'collection-replaced', 'invalid-cursor']);

interface BuildOptions {
  readonly resource: Resource;
  readonly form: EditionForm;
  readonly objects: ObjectStore;
  readonly transcoder: Transcoder;
  readonly signal: AbortSignal;
  /** Counts what is read and stored, and says how far a walk has come. */
  readonly attempt: Attempt;
  readonly walkMs?: number;
}

interface TableOptions extends BuildOptions {
  /** Null: no chunks of Parquet are declared. */
  readonly table: EditionTable | null;
}

/** An edition whose files are all stored. */
export interface BuiltEdition {
  readonly head: EditionHead;
  readonly place: string;
  readonly form: string;
  readonly table: EditionTable | null;
  /** Whether no row has changed, so that nothing but the head is another one. */
  readonly isSame: boolean;
}

/**
 * Makes the edition that follows that of a record, and stores its files. It is not visible before the record has it. Where no
 * row has changed, nothing is read and stored: the edition is that of before at a later time.
 */
export async function build(record: EditionRecord, given: BuildOptions): Promise<BuiltEdition> {
  const work = record.head ? null : await filesOf(given).work();
  const options: TableOptions = { ...given, table: await tableOf(record, work, given) };
  const { head, place } = record;
  if (head && place !== null && record.form === formOf(options))
    try {
      const before = { head, from: placeOf(place) };
      return (await sameEdition(before, options)) ?? (await buildBehind(before, record, options));
    } catch (error) {
      if (!isLost(error)) throw error;
    }
  return buildOfAll(record, options);
}

/** What the next edition begins with. */
interface Before {
  readonly head: EditionHead;
  readonly from: KeptPlace;
}

async function buildBehind(
  { head, from }: Before,
  record: EditionRecord,
  options: TableOptions,
): Promise<BuiltEdition> {
  const { chunks } = await filesOf(options).contents(head);
  const start = { ranges: new Ranges(chunks, true), from, delta: new DeltaLines(), isWalk: false };
  return buildFrom(record, options, start);
}

/** Reads all rows. Goes on with a walk that was interrupted, if what changed since is known. */
async function buildOfAll(record: EditionRecord, options: TableOptions): Promise<BuiltEdition> {
  const work = await filesOf(options).work();
  if (work?.form === formOf(options) && work.chunks.length > 0)
    try {
      return await buildFrom(record, options, goOnWith(work));
    } catch (error) {
      if (!isLost(error)) throw error;
    }
  if (work) await filesOf(options).saveWork(null);
  return buildFrom(record, options, await newStart(options));
}

function isLost(error: unknown): boolean {
  return error instanceof AppError && LOST.has(error.code);
}

function filesOf({ objects, resource }: BuildOptions): EditionFiles {
  return new EditionFiles(objects, resource.name);
}

/** The edition of before at a later time. Null: rows have changed. */
async function sameEdition({ head, from }: Before, options: TableOptions): Promise<BuiltEdition | null> {
  const { resource, form, table, signal } = options;
  const later = await withoutChanges(resource, feedOf(resource), from, signal);
  if (!later) return null;
  const made = { place: later.place, identity: from.identity };
  const same: EditionHead = {
    ...head,
    at: new Date(later.at).toISOString(),
    changes: cursorOf(resource, made),
    files: form.filesAt,
    kept: keptBehind(head, head.edition, form.keep),
  };
  return { head: same, place: placeText(made), form: formOf(options), table, isSame: true };
}

/** From where ranges are made clean. */
interface Start {
  readonly ranges: Ranges;
  readonly from: KeptPlace;
  /** Null: it is not known what changed since the edition before. */
  readonly delta: DeltaLines | null;
  readonly isWalk: boolean;
}

async function tableOf(record: EditionRecord, work: Work | null, { form, resource, signal }: BuildOptions) {
  return form.formats.includes('parquet') ? tableFor(record, work?.table ?? null, resource, signal) : null;
}

function goOnWith({ chunks, dirty, isWhole, place }: Work): Start {
  const ranges = new Ranges(chunks);
  ranges.goOn(dirty, isWhole);
  return { ranges, from: placeOf(place), delta: null, isWalk: true };
}

async function newStart(options: BuildOptions): Promise<Start> {
  const { resource, signal } = options;
  const from = await placeBefore(BY_ID, feedOf(resource), resource.rows, signal);
  return { ranges: new Ranges([]), from, delta: null, isWalk: true };
}

async function buildFrom(record: EditionRecord, options: TableOptions, start: Start): Promise<BuiltEdition> {
  const { resource, form, objects, transcoder, signal, attempt, walkMs, table } = options;
  const files = filesOf(options);
  const { ranges, from, delta, isWalk } = start;
  const chunkFiles = new ChunkFiles({
    objects,
    resource: resource.name,
    formats: form.formats,
    ...(table && { parquet: parquetIn(table) }),
    kept: await keptSizes(record, files, table),
    attempt,
  });
  if (isWalk) attempt.walk = await beginningOf(ranges, resource, signal);
  const walked = async (place: KeptPlace['place']): Promise<void> => {
    if (!isWalk) return;
    await files.saveWork({
      form: formOf(options),
      table,
      place: placeText({ place, identity: from.identity }),
      chunks: ranges.begun,
      dirty: ranges.dirtyPlaces,
      isWhole: ranges.isWhole,
    });
  };
  const reader = new EditionReader({
    resource,
    feed: feedOf(resource),
    transcoder,
    files: chunkFiles,
    ranges,
    target: form.target,
    signal,
    ...from,
    delta,
    walked,
    attempt,
    ...(walkMs !== undefined && { walkMs }),
  });
  const at = await reader.run();
  // The first rows came behind the look at them.
  if (table?.isOfRows === false && ranges.chunks.length > 0)
    return buildOfAll(record, { ...options, table: await tableOf(record, null, options) });
  const made = { place: reader.place, identity: from.identity };
  const contents = { chunks: ranges.chunks, delta, at, made };
  const isOther = record.form !== formOf(options);
  const head = await putHead(record.head, contents, { resource, form, files, table, isOther });
  return { head, place: placeText(made), form: formOf(options), table, isSame: false };
}

/** How far a walk has come that begins, or goes on. */
async function beginningOf({ begun }: Ranges, { rows }: Resource, signal: AbortSignal) {
  const { rows: of, is } = await rows.count(BY_ID, 'estimated', signal);
  return { rows: sumOf(begun, 'rows'), of: is === 'atLeast' ? null : of, bytes: sumOf(begun, 'bytes') };
}

function parquetIn({ schema }: EditionTable) {
  return { schema: schema.name, make: (rows: Uint8Array) => parquetOf(rows, schema) };
}

/** The sizes of the files of editions that are kept, by their chunks: they need not be put. */
async function keptSizes(
  { head }: EditionRecord,
  files: EditionFiles,
  table: EditionTable | null,
): Promise<Map<string, ChunkEntry['sizes']>> {
  const kept = new Map<string, ChunkEntry['sizes']>();
  for (const { edition } of head ? [head, ...head.kept] : []) {
    const one = edition === head?.edition ? head : await files.head(edition);
    if (!one || one.target !== head?.target) continue;
    const hasOwnColumns = one.schema === table?.schema.name;
    for (const { name, sizes } of (await files.contents(one)).chunks) {
      const { parquet, ...others } = sizes;
      const own = hasOwnColumns && parquet !== undefined ? { parquet } : undefined;
      kept.set(name, { ...kept.get(name), ...others, ...own });
    }
  }
  return kept;
}

/** What chunks depend on beside the rows. Where it is another one, all rows are read again. */
function formOf({ resource, form, table }: TableOptions): string {
  const all = [form.target, form.formats, resource.shown.policy ?? null, table?.schema.name];
  return JSON.stringify(all.filter((one) => one !== undefined));
}

function feedOf({ rows }: Resource): ChangeFeed {
  if (rows.changes) return rows.changes;
  throw new AppError('changes-unsupported', 'The store has no changes, so there are no editions.');
}
