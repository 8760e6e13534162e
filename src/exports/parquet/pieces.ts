import type { FileStore } from '../../store/files.ts';
import { endOfFile, MAGIC, rowGroupsOf, TRAILER_BYTES, type Piece } from './footer.ts';

/** An unfinished file: its first `bytes` bytes, which are in the store. */
interface Unfinished {
  readonly name: string;
  readonly bytes: number;
}

/**
 * The end of a file whose pieces are all in the store, also those that an earlier attempt wrote. Throws RangeError when
 * they do not have `rows` rows together, because such a file is not whole.
 */
export async function parquetEnd(
  files: Pick<FileStore, 'read'>,
  file: Unfinished,
  rows: number,
  facts: Readonly<Record<string, string>>,
): Promise<Uint8Array> {
  const groups: (readonly Uint8Array[])[] = [];
  let [found, footer] = [0n, new Uint8Array(0)];
  for await (const piece of piecesOf(files, file)) {
    const own = rowGroupsOf(piece);
    groups.push(own.groups);
    found += own.rows;
    footer = Uint8Array.from(piece.footer);
  }
  if (found !== BigInt(rows)) throw new RangeError(`the row groups have ${found} rows, not ${rows}`);
  return endOfFile(footer, groups.toReversed().flat(), found, facts);
}

/** The pieces of an unfinished file, from the last to the first. */
async function* piecesOf(
  files: Pick<FileStore, 'read'>,
  { name, bytes }: Unfinished,
): AsyncGenerator<Piece, void, undefined> {
  for (let end = bytes; end > MAGIC.length;) {
    const trailer = await bytesOf(files, name, end - TRAILER_BYTES, end);
    const [footerBytes, pieceBytes] = [trailer.readUInt32LE(0), trailer.readUInt32LE(4)];
    const footerEnd = end - TRAILER_BYTES;
    const footer = await bytesOf(files, name, footerEnd - footerBytes, footerEnd);
    end -= pieceBytes;
    yield { at: end, footer };
  }
}

async function bytesOf(
  files: Pick<FileStore, 'read'>,
  name: string,
  start: number,
  end: number,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of files.read(name, start, end)) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}
