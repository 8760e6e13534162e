import { AppError } from '../base/errors.ts';
import type { Transcoder } from '../rows/rows.ts';
import { orRelease } from '../store/batch.ts';
import type { FileStore } from '../store/files.ts';
import type { RowReader, Plan } from '../store/store.ts';
import { chain, FIRST_BATCH, planBehind } from '../pipeline/chain.ts';
import { pump } from '../pipeline/pump.ts';
import { readFields, readPlan } from '../resources/query/read-plan.ts';
import type { Resource } from '../resources/query/resource.ts';
import { changesFrom } from '../resources/token/feed-cursor.ts';
import { ExportFile } from './file.ts';
import { fileName, type FinishedFile, type Progress, type RunningJob } from './job.ts';
import { restsOf, type RequestCount } from './rests.ts';
import { queryOf, readFileForm, resourceOf, shownAs, type ExportSources } from './order.ts';

export interface WriteOptions {
  readonly sources: () => ExportSources;
  readonly transcoder: Transcoder;
  readonly files: FileStore;
  /** The requests that exports rest for. Absent: this process serves none. */
  readonly begun?: RequestCount;
}

/** Receives what an attempt has found or written. */
type Report = (news: Partial<Progress>) => void;

/** Writes a job's file: its query's whole stream. Rejects with errors of store and files, and the signal's reason. */
export async function writeFile(
  job: RunningJob,
  { sources, transcoder, files, begun }: WriteOptions,
  signal: AbortSignal,
  report: Report,
): Promise<FinishedFile> {
  const { id, lease, request } = job;
  const resource = resourceOf(request, sources());
  const rests = begun && restsOf(request, files, { begun });
  const file = await ExportFile.create(files, fileName(id, lease.token), request.compression, signal);
  try {
    const plan = await begin(job, resource, signal, report);
    const estimated = job.progress.estimatedRows === null ? estimate(plan, resource, signal, report) : null;
    estimated?.catch(() => undefined); // reported when the rows are written
    const query = queryOf(request);
    const asksForm = readFileForm(query, request.format, resource);
    const streams = orLive(resource.streamsOf(resource.rows), () => report({ time: 'live' }));
    const first = await streams.read(plan, {}, FIRST_BATCH, signal);
    const fields = readFields(query, resource);
    const set = { resource, fields, signal, plan: planBehind(plan, first), first, most: Infinity };
    const form = await orRelease(first, () => asksForm(set, transcoder));
    // A file is not resumed, but fetched by ranges: it has no cursors.
    const proof = { plan, cursorOf: () => undefined, start: undefined, now: () => 0 };
    const { encoder, tail } = await orRelease(first, () => form.write(proof));
    const through = form.fileSink?.(file);
    let written = 0;
    const observer = {
      rows: (count: number) => report({ rows: (written += count), bytes: file.bytes }),
      parked: () => () => undefined,
    };
    try {
      const batches = chain(streams, plan, first, Infinity, signal);
      await pump(
        { first: rests?.between(batches, () => file.settled(), signal) ?? batches, observer },
        encoder,
        { head: form.head, tail },
        through ?? file,
      );
      await through?.end();
    } finally {
      await through?.close();
    }
    await estimated;
    await file.end();
    return file.finished(written);
  } finally {
    await file.close();
  }
}

/** Decides of which collection the rows are, of which time, and from where changes follow, before the first row is read. */
async function begin(
  { request, progress }: RunningJob,
  resource: Resource,
  signal: AbortSignal,
  report: Report,
): Promise<Plan> {
  const { rows } = resource;
  // The collection is determined before the time. The collection at that time is then never another one.
  const present = await rows.describe(signal);
  const identity = progress.identity ?? present.identity ?? null;
  const asked = await readPlan(queryOf(request), resource, signal);
  const { now: at = null } = await rows.describe(signal, { now: true });
  const plan = { ...asked, ...(identity !== null && { identity }), ...(at !== null && { at }) };
  const changes = await changesFrom(resource, plan, signal);
  report({
    identity,
    shown: shownAs(resource),
    time: at === null ? 'live' : 'snapshot',
    changes: changes?.cursor ?? null,
  });
  return { ...plan, ...changes?.bounds };
}

/**
 * Counts rows, unless that takes too long. The number of all rows is known to the store. MongoDB would need half a second
 * of a processor to count a million. AppErrors are ignored: the chain itself meets an unavailable store.
 */
async function estimate(plan: Plan, { rows }: Resource, signal: AbortSignal, report: Report): Promise<void> {
  try {
    const nearly = await rows.count(plan, 'estimated', signal);
    const found = nearly.is === 'atLeast' ? await rows.count(plan, 'exact', signal) : nearly;
    if (found.is !== 'atLeast') report({ estimatedRows: found.rows });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
  }
}

/** Reads the rest live, no earlier than the plan's point in time, when the store no longer has that. */
function orLive(streams: RowReader, onLive: () => void): RowReader {
  let isLive = false;
  const now = ({ at, ...plan }: Plan): Plan => ({ ...plan, ...(at !== undefined && { since: at }) });
  return {
    ...streams,
    read: async (plan, ...rest) => {
      try {
        if (!isLive) return await streams.read(plan, ...rest);
      } catch (error) {
        if (!(error instanceof AppError) || error.code !== 'snapshot-expired') throw error;
      }
      if (!isLive) onLive();
      isLive = true;
      return streams.read(now(plan), ...rest);
    },
  };
}
