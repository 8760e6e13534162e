import { open, rename, rm } from 'node:fs/promises';
import { framed, type Format } from './framing.ts';
import { provedBytes } from './part-file.ts';
import type { Place } from './place.ts';

/** A part that is whole: the file with its rows, and the proof of them. */
export interface WholePart {
  readonly file: string;
  readonly place: Place;
}

export interface Shape {
  readonly format: Format;
  /** The fields that the URL asks for. null for all fields. */
  readonly fields: readonly string[] | null;
}

/**
 * Makes the output file from its parts, in their order. Reads the parts back, checks them against their
 * proofs, and renames the file to its final name when it is whole and on disk. The parts stay, unless a
 * single part becomes the file.
 */
export async function assemble(
  parts: readonly WholePart[],
  output: string,
  { format, fields }: Shape,
  signal: AbortSignal,
): Promise<void> {
  const [first] = parts;
  if (first && parts.length === 1 && format === 'ndjson') {
    for await (const chunk of provedBytes(first.file, first.place))
      if (chunk.length > 0) signal.throwIfAborted();
    await rename(first.file, output);
    return;
  }
  const fresh = `${output}.part.whole`;
  await writeWhole(framed(joined(parts), format, fields), fresh, signal);
  await rename(fresh, output);
}

export async function removeParts(parts: readonly Pick<WholePart, 'file'>[]): Promise<void> {
  for (const { file } of parts) await rm(file, { force: true });
}

async function* joined(parts: readonly WholePart[]): AsyncGenerator<Buffer, void, undefined> {
  for (const { file, place } of parts) yield* provedBytes(file, place);
}

async function writeWhole(content: AsyncIterable<Buffer>, path: string, signal: AbortSignal): Promise<void> {
  const handle = await open(path, 'w');
  try {
    for await (const chunk of content) {
      signal.throwIfAborted();
      await handle.writeFile(chunk);
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
}
