import { createHash, type Hash } from 'node:crypto';
import { crc32 } from '../stream/crc32.ts';
import { FileGoneError, type FileStore, type FileWriter } from '../store/files.ts';
import { filesOf, type FinishedFile, type Job, type Kept } from './job.ts';

/** The file that an attempt writes. Its SHA-256 and CRC-32 are computed during the writing. */
export class ExportFile {
  readonly name: string;
  bytes = 0;
  crc32 = 0;
  readonly #hash: Hash = createHash('sha256');
  readonly #writer: FileWriter;

  private constructor(name: string, writer: FileWriter) {
    this.name = name;
    this.#writer = writer;
  }

  static async create(files: FileStore, name: string): Promise<ExportFile> {
    return new ExportFile(name, await files.create(name));
  }

  /**
   * Creates a file of this name that begins with the bytes another attempt kept. The bytes are copied,
   * because the other attempt may still be alive and still write. Resolves with null when the kept file no
   * longer exists, or when its CRC-32 differs.
   */
  static async continue(files: FileStore, name: string, kept: Kept): Promise<ExportFile | null> {
    const file = await ExportFile.create(files, name);
    try {
      for await (const chunk of files.read(kept.name, 0, kept.bytes)) await file.write(chunk);
    } catch (error) {
      await file.close();
      if (error instanceof FileGoneError) return null;
      throw error;
    }
    if (file.crc32 === kept.crc32) return file;
    await file.close();
    return null;
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#writer.write(bytes);
    this.#hash.update(bytes);
    this.crc32 = crc32(bytes, this.crc32);
    this.bytes += bytes.length;
  }

  sync(): Promise<void> {
    return this.#writer.sync();
  }

  /** Finishes the file, which holds `rows` rows. */
  async finish(rows: number): Promise<FinishedFile> {
    await this.#writer.finish();
    const { name, bytes, crc32: crc } = this;
    return { name, bytes, rows, sha256: this.#hash.digest('hex'), crc32: crc };
  }

  close(): Promise<void> {
    return this.#writer.close();
  }
}

/**
 * Removes the files that killed or stopped attempts at a job left behind and that the job does not need.
 * `job` is the current record. It must be final, or null when the record was removed, because a running attempt would
 * lose its file.
 */
export async function removeLeftovers(files: FileStore, id: string, job: Job | null): Promise<void> {
  const needed = job ? filesOf(job) : [];
  for (const name of await files.names(id)) if (!needed.includes(name)) await files.remove(name);
}
