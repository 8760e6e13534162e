import type { EditionHead } from '../base/edition/head.ts';
import type { FeedPlace } from '../store/change-feed.ts';
import { makeBookmark, type Identity } from '../store/bookmark.ts';
import { documentOf } from '../store/batch.ts';
import type { RecordDeclaration, Records } from '../store/records.ts';
import { readRow } from '../store/turns/read-row.ts';
import { BSON } from '../store/values/bson.ts';
import type { TableSchema } from './delta/schema.ts';

export const EDITIONS: RecordDeclaration = {
  name: 'editions',
  collection: 'editions',
  indexes: [],
  validator: {
    $jsonSchema: {
      bsonType: 'object',
      required: ['_id', 'state'],
      properties: { _id: { bsonType: 'string' }, state: { bsonType: 'string' } },
    },
  },
};

/** The editions of a resource: the one place that says which there are. Times are milliseconds since 1970. */
export interface EditionRecord {
  /** The exclusive right to make editions of the resource. Null: nobody has it. */
  readonly lease: { readonly token: string; readonly until: number } | null;
  readonly head: EditionHead | null;
  /** Whether what follows a commit was done: the file of the head, faces, and removals. */
  readonly isPublished: boolean;
  /** Up to where the changes are in the head, as `placeText` writes it, and what it was made of: see `formOf` in build.ts. */
  readonly place: string | null;
  readonly form: string | null;
  /** The columns of chunks of Parquet: those of the newest edition that has them, and those before them. */
  readonly tables: readonly EditionTable[];
  /** Editions that are no longer kept, whose files stay until a time. `schema`: only its chunks of Parquet with other columns. */
  readonly leaving: readonly { readonly edition: string; readonly until: number; readonly schema?: string }[];
  /** When the next edition is due. */
  readonly dueAt: number;
  /** When one was asked for behind the time of the one under way. */
  readonly isAsked: boolean;
  /** How far a walk over all rows has come. Null: none is under way. */
  readonly progress: { readonly rows: number; readonly of: number | null; readonly bytes: number } | null;
  readonly failures: number;
  /** How long the last attempt took that ended, in milliseconds. Null: none has. */
  readonly lastMs: number | null;
}

/** The columns of a resource's chunks of Parquet. */
export interface EditionTable {
  readonly schema: TableSchema;
  /** What the resource declared when they were fixed. Where that is another, they are fixed anew. */
  readonly declared: string;
  /** Whether there were rows to look at. Else they are fixed by the next rows. */
  readonly isOfRows: boolean;
}

const NEW: EditionRecord = {
  lease: null,
  head: null,
  isPublished: true,
  place: null,
  form: null,
  tables: [],
  leaving: [],
  dueAt: 0,
  isAsked: false,
  progress: null,
  failures: 0,
  lastMs: null,
};

/** Another process makes the editions of the resource. This one is over and must change nothing. */
export class EditionLeaseLostError extends Error {
  constructor(resource: string) {
    super(`the lease of the editions of ${resource} is lost`);
    this.name = 'EditionLeaseLostError';
  }
}

/** The records of editions, by the names of resources. */
export class EditionRecords {
  readonly #records: Records;

  constructor(records: Records) {
    this.#records = records;
  }

  async get(resource: string, signal: AbortSignal): Promise<EditionRecord> {
    const batch = await readRow(this.#records, makeBookmark({ _id: resource }), signal);
    if (!batch) return NEW;
    try {
      return recordOf(documentOf(batch));
    } finally {
      batch.release();
    }
  }

  /** Changes a record in one step, which may run several times. The same record: it stays. Resolves with the new one. */
  async change(resource: string, step: (record: EditionRecord) => EditionRecord): Promise<EditionRecord> {
    const { after } = await this.#records.change(resource, (row) => {
      const record = row ? recordOf(row) : NEW;
      const next = step(record);
      return next === record ? 'keep' : BSON.serialize({ _id: resource, state: JSON.stringify(next) });
    });
    return after ? recordOf(after) : NEW;
  }

  /** A step of the holder of a lease. Rejects with EditionLeaseLostError when another has it. */
  advance(
    resource: string,
    token: string,
    step: (record: EditionRecord) => EditionRecord,
  ): Promise<EditionRecord> {
    return this.change(resource, (record) => {
      if (record.lease?.token !== token) throw new EditionLeaseLostError(resource);
      return step(record);
    });
  }
}

function recordOf(row: Uint8Array): EditionRecord {
  const { state } = BSON.deserialize(Buffer.from(row)) as { readonly state: string };
  return { ...NEW, ...(JSON.parse(state) as Partial<EditionRecord>) };
}

export interface KeptPlace {
  readonly place: FeedPlace;
  readonly identity: Identity | undefined;
}

export function placeText({ place, identity }: KeptPlace): string {
  const { token, seen } = place;
  return JSON.stringify({
    token: Buffer.from(token).toString('base64'),
    ...(seen !== undefined && { seen: String(seen) }),
    ...(identity !== undefined && { identity }),
  });
}

export function placeOf(text: string): KeptPlace {
  const { token, seen, identity } = JSON.parse(text) as { token: string; seen?: string; identity?: string };
  const place = {
    token: new Uint8Array(Buffer.from(token, 'base64')),
    ...(seen !== undefined && { seen: BigInt(seen) }),
  };
  return { place, identity };
}
