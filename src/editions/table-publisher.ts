import type { Log } from '../base/log.ts';
import { ForeignVersionError } from './delta/log.ts';
import type { EditionFiles } from './edition-files.ts';
import type { Face } from './face.ts';
import type { EditionRecord } from './record.ts';
import { tableEdition } from './table.ts';

/** Publishes editions with chunks of Parquet by a face. */
export class TablePublisher {
  readonly #face: Face;
  readonly #log: Log;
  /** The resources whose table another program wrote into, as was logged. */
  readonly #foreign = new Set<string>();

  constructor(face: Face, log: Log) {
    this.#face = face;
    this.#log = log;
  }

  /**
   * Makes the newest edition of a record the newest version of its table. A table of another program is logged once, and
   * stops no edition. Rejects with what `Face.commit` rejects with beside that.
   */
  async publish(record: EditionRecord, files: EditionFiles): Promise<void> {
    const edition = await tableEdition(record.head, record, files);
    if (!edition) return;
    const [before] = edition.head.kept;
    const previous = before ? await tableEdition(await files.head(before.edition), record, files) : null;
    try {
      await this.#face.commit(edition, previous);
      this.#foreign.delete(files.resource);
    } catch (error) {
      if (!(error instanceof ForeignVersionError)) throw error;
      this.#note(files.resource, error);
    }
  }

  #note(resource: string, err: ForeignVersionError): void {
    if (this.#foreign.has(resource)) return;
    this.#foreign.add(resource);
    this.#log.error({ resource, err }, 'editions are made, but are no versions of the table');
  }
}
