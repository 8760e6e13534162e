import type { ProblemDocument } from '../../../base/errors.ts';
import type { Content } from '../../../http/route.ts';
import type { Parameter } from '../../../input/parameter.ts';
import type { Query } from '../../../input/query.ts';
import type { RowEncoder, Transcoder } from '../../../rows/rows.ts';
import type { Schema } from '../../../base/schema.ts';
import type { Batch } from '../../../store/batch.ts';
import type { Collection, Plan } from '../../../store/store.ts';
import type { ArrowEncoderOptions } from '../../../pipeline/arrow-encoder.ts';
import type { CheckpointOptions } from '../../../pipeline/checkpoints.ts';
import type { Compression } from '../../../pipeline/pieces.ts';
import type { Sink } from '../../../pipeline/sink.ts';
import type { Resource } from '../../query/resource.ts';
import type { RowsDocs } from '../../route-docs.ts';

/** A format of rows: all that is known about it. Routes, negotiation and exports know the formats by list.ts alone. */
export interface Format {
  /** The value of `format`. */
  readonly name: string;
  /** The media types that ask for it, the preferred one first. */
  readonly types: readonly [string, ...string[]];
  /** Of its files. A stream's can say more: see Form. */
  readonly contentType: string;
  /** Of its files. */
  readonly extension: string;
  /** The compressions of its files. */
  readonly compressions: readonly Compression[];
  /** Whether its files are compressed inside. */
  readonly isCompressed?: true;
  /** Whether only exports write it, because its readers begin at the end of the file. */
  readonly isFileOnly?: true;
  /** The parameters that other formats refuse. */
  readonly options: readonly Option[];
  /** What /openapi.json says of its streams, by media type. */
  readonly content: (docs: RowsDocs) => Readonly<Record<string, Content>>;
  /** What /openapi.json says of its files. Absent: bytes. */
  readonly fileSchema?: Schema;
  /** Why this server cannot write it, after which package that is installed could. Null: it can. */
  readonly whyNot?: () => string | null;
  /** Parameters that give all parts of a set the same form, beside those of the query. */
  readonly ofParts?: (
    query: Query,
    set: FormRows,
  ) => Promise<readonly (readonly [name: string, text: string])[]>;
  /** Reads what a query asks of this format. AppError `conflicting-parameters` for what it cannot do. */
  readonly read: (query: Query, asked: FormatRequest) => MakeForm;
}

/** A parameter of one format. */
interface Option {
  readonly parameter: Parameter<unknown>;
  /** The text with which it is accepted for other formats, too: it asks for nothing. */
  readonly neutral?: string;
  /** The schema of the member of an order that stands for it. Absent: files do not have it. */
  readonly member?: Schema;
}

/** What a query says for every format. */
export interface FormatRequest {
  /** The media type of the stream. */
  readonly type: string;
  /** Undefined: all. */
  readonly fields: readonly string[] | undefined;
  /** Whether the stream begins inside the set, to be joined to another piece. */
  readonly isPiece: boolean;
  readonly resource: Pick<Resource, 'form' | 'kinds' | 'shown'>;
}

/** The rows among which a format may look for its columns. */
export interface FormRows {
  readonly resource: FormatRequest['resource'] & { readonly rows: Pick<Collection, 'read' | 'split'> };
  readonly plan: Plan;
  readonly fields: readonly string[] | undefined;
  readonly signal: AbortSignal;
}

/** A set whose first batch is read: `plan` is that of the rows behind it. The batch stays the caller's. */
export interface BegunRows extends FormRows {
  readonly first: Batch;
  /** The most rows that are written. */
  readonly most: number;
}

/** What one stream asks of its format. Rejects when the store fails. */
export type MakeForm = (set: BegunRows, transcoder: Transcoder) => Form | Promise<Form>;

/** How the rows of one stream are written. */
interface Form {
  readonly contentType: string;
  /** What stands before the rows. */
  readonly head: string | Uint8Array;
  readonly write: (proof: Proof) => Writing;
  /** Makes the sink that a file's rows go through. Absent: they are the file. */
  readonly fileSink?: (file: Sink) => FileSink;
}

/** What a proof of the rows is made of. */
export type Proof = ArrowEncoderOptions & Pick<CheckpointOptions, 'now'>;

interface Writing {
  readonly encoder: RowEncoder;
  /** What stands after the rows. Absent: nothing. */
  readonly tail?: () => string | Uint8Array;
  /** The encoder, if it also writes how far the rows have come, so that a reader can verify and resume them. */
  readonly proving?: ProvingEncoder;
}

interface ProvingEncoder extends RowEncoder {
  readonly rows: number;
  /** What says why no more rows come. Absent where nothing can say it. */
  error?(problem: ProblemDocument): string;
}

interface FileSink extends Sink {
  /** Writes the last bytes into the file, and does not end it. */
  end(): Promise<void>;
  /** Call once, also after a failure. */
  close(): Promise<void>;
}
