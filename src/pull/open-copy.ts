import { statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { STDOUT, type PullCommand } from './arguments.ts';
import { HeldLines, type Copy } from './copy.ts';
import { lastTruePlace, openPartFile, type PartFile } from './part-file.ts';
import { BEGINNING } from './proof.ts';
import { Refusal } from './retry.ts';
import { readState, writeState } from './state.ts';

/** The copy that follows the set of a command. Rejects with Refusal when the file holds something else. */
export async function openCopy(
  { into, output, url, restart }: PullCommand,
  stdout: NodeJS.WritableStream,
  signal: AbortSignal,
): Promise<Copy> {
  if (into !== null) return (await import('./sqlite.ts')).openSqliteCopy(into, url, restart);
  return output === STDOUT ? pipeTo(stdout, signal) : openChangeLog(output, url.href, restart);
}

/** Lines on standard output, written when they are proved. `signal` ends a write that has no reader. */
export function pipeTo(stdout: NodeJS.WritableStream, signal: AbortSignal): Copy {
  const held = new HeldLines();
  let place = BEGINNING;
  return {
    name: 'standard output',
    get place() {
      return place;
    },
    add: (bytes) => held.add(bytes),
    prove: async (next) => {
      await pipeline([held.take()], stdout, { end: false, signal });
      place = next;
    },
    takeBack: () => void held.take(),
    close: () => undefined,
  };
}

/**
 * Opens a file that grows: all rows of a set, then a line for each change. `FILE.state` says how far it is proved; the rest
 * is removed. Rejects with Refusal when the file is not the one that an earlier run of the same URL left.
 */
async function openChangeLog(path: string, url: string, restart: boolean): Promise<PartFile> {
  const statePath = `${path}.state`;
  if (restart) await Promise.all([path, statePath].map((one) => rm(one, { force: true })));
  const state = await readState(statePath);
  if (state === null && (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0)
    throw new Refusal(`${path} exists and is not the file of a followed set: --restart replaces it`);
  if (state && state.task.url !== url)
    throw new Refusal(`${path} follows ${state.task.url}: --restart begins with another set`);
  const place = state?.places[0]?.at(-1) ?? BEGINNING;
  if (place.bytes > 0 && (await lastTruePlace(path, [place])) !== place)
    throw new Refusal(`${path} is not what the earlier run wrote: --restart begins it anew`);
  return openPartFile(path, place, async (next, file) => {
    await file.datasync();
    await writeState(statePath, { task: { url, parts: [url] }, places: [[next]] });
  });
}
