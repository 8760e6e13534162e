import { compressing, pieceCodecs } from '../stream/pieces.ts';
import type { FileStore } from '../store/files.ts';
import type { ExportFile } from './file.ts';
import type { Job } from './job.ts';
import { MAGIC } from './parquet/footer.ts';
import { parquetEnd } from './parquet/pieces.ts';
import { RowGroups } from './parquet/row-groups.ts';

/** What is known of the rows when all of them are written. */
interface Written {
  readonly rows: number;
  readonly columns: Job['columns'];
}

/** How segments become the bytes of a file. A piece depends on nothing but its segment. */
export interface FileCodec {
  /** The bytes before the first piece. */
  readonly head: Uint8Array;
  compress(text: Uint8Array): Promise<Uint8Array>;
  /** The bytes after the last piece, when all pieces are written. */
  tail(file: ExportFile, written: Written): Promise<Uint8Array>;
  /** Call once, also after a failure. */
  close(): Promise<void>;
}

export function fileCodec(
  { format, compression }: Pick<Job['request'], 'format' | 'compression'>,
  files: Pick<FileStore, 'read'>,
): FileCodec {
  if (format === 'parquet') return parquetCodec(files);
  const codec = pieceCodecs[compression];
  return { ...codec, tail: () => Promise.resolve(codec.tail), close: () => Promise.resolve() };
}

/**
 * Parquet: each segment is a row group, compressed inside. The metadata of the file say, beside the columns, how many rows
 * there are, and the size and CRC-32 of all bytes before the footer.
 */
function parquetCodec(files: Pick<FileStore, 'read'>): FileCodec {
  const rowGroups = new RowGroups();
  return {
    head: MAGIC,
    compress: (stream) => compressing.take(() => rowGroups.make(stream)),
    tail: async (file, { rows, columns }) => {
      await file.sync();
      const { name, bytes, crc32 } = file;
      const end = { rows, bytes, crc32: crc32.toString(16).padStart(8, '0') };
      return parquetEnd(files, { name, bytes }, rows, {
        'sluice.columns': (columns ?? []).join(','),
        'sluice.end': JSON.stringify(end),
      });
    },
    close: () => rowGroups.close(),
  };
}
