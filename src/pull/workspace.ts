import { createWriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { lastTruePlace, openPartFile, type PartFile } from './part-file.ts';
import { BEGINNING, sumOf, type ProvedPlace } from './proof.ts';
import { Refusal } from './retry.ts';
import { proofLine, readState, writeState } from './state.ts';

/** The files beside the output while it is pulled. */
export interface Workspace {
  /** The parts of the set (ranges of ids, or all of it), in their order. */
  readonly parts: readonly { readonly url: string; readonly file: PartFile }[];
  /** What is proved of all parts together. */
  proved(): ProvedPlace;
  /** Closes all files. Files without any row are useless to the next run and are removed. */
  close(): Promise<void>;
  /** Makes the output file from all parts, and removes them. */
  finish(signal: AbortSignal): Promise<void>;
}

/**
 * Opens the files beside an output: `FILE.part` with the rows (`FILE.part.1` and so on for several parts) and
 * `FILE.part.state` with their proofs. It continues the remains of an earlier run of the same URL, or begins with the parts
 * that `begin` returns. Rejects with Refusal when another URL is being pulled into this file.
 */
export async function openWorkspace(
  output: string,
  url: string,
  { restart, begin }: { readonly restart: boolean; readonly begin: () => Promise<readonly string[]> },
): Promise<Workspace> {
  const statePath = `${output}.part.state`;
  const found = restart ? null : await readState(statePath);
  const saved = found?.places.some((places) => places.some(({ rows }) => rows > 0)) ? found : null;
  if (saved && saved.task.url !== url)
    throw new Refusal(`${statePath} belongs to a pull of ${saved.task.url}: --restart discards it`);
  const task = saved?.task ?? { url, parts: await begin() };
  const paths = task.parts.map((_, n) => `${output}.part${task.parts.length === 1 ? '' : `.${n + 1}`}`);
  const places = await Promise.all(paths.map((path, n) => lastTruePlace(path, saved?.places[n] ?? [])));
  await writeState(statePath, { task, places: places.map((place) => [place]) });
  const state = await open(statePath, 'a');
  const record = (n: number) => (place: ProvedPlace) => state.writeFile(proofLine(n, place));
  const files = await Promise.all(
    paths.map((path, n) => openPartFile(path, places[n] ?? BEGINNING, record(n))),
  );
  const proved = () => sumOf(files.map(({ place }) => place));
  const remove = () => Promise.all([statePath, ...paths].map((path) => rm(path, { force: true })));
  return {
    parts: files.map((file, n) => ({ url: task.parts[n] ?? '', file })),
    proved,
    close: async () => {
      for (const file of files) await file.close();
      await state.close();
      if (proved().rows === 0 && !proved().ended) await remove();
    },
    finish: async (signal) => {
      await assemble(files, output, signal);
      await remove();
    },
  };
}

/** Reads the parts back, checks them against their proofs, and gives the file its name when it is whole and on disk. */
async function assemble(files: readonly PartFile[], output: string, signal: AbortSignal): Promise<void> {
  const [first] = files;
  if (first && files.length === 1) {
    for await (const chunk of first.proved()) if (chunk.length > 0) signal.throwIfAborted();
    await rename(first.name, output);
    return;
  }
  const fresh = `${output}.part.whole`;
  await pipeline(joined(files), createWriteStream(fresh, { flush: true }), { signal });
  await rename(fresh, output);
}

async function* joined(files: readonly PartFile[]): AsyncGenerator<Buffer, void, undefined> {
  for (const file of files) yield* file.proved();
}
