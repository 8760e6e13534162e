/** The Arrow IPC streaming format. */
export const ARROW_TYPE = 'application/vnd.apache.arrow.stream';
export const PARQUET_TYPE = 'application/vnd.apache.parquet';

/**
 * The formats in which rows are streamed. `types` are the media types that ask for it, the preferred one first;
 * `contentType` is what answers carry; `layout` is how rows follow one another (see Framing; `table` is CSV, `batches`
 * is Arrow).
 */
export const FORMS = {
  ndjson: {
    types: ['application/x-ndjson', 'application/jsonl'],
    contentType: 'application/x-ndjson',
    layout: 'lines',
  },
  json: { types: ['application/json'], contentType: 'application/json', layout: 'array' },
  csv: { types: ['text/csv'], contentType: 'text/csv; charset=utf-8', layout: 'table' },
  arrow: { types: [ARROW_TYPE], contentType: ARROW_TYPE, layout: 'batches' },
} as const;

export type Format = keyof typeof FORMS;
export const FORMATS = Object.keys(FORMS) as readonly Format[];
/** The formats of text, in which files are imported and pulled. A format's name is also the extension of its files. */
export const TEXT_FORMATS = ['ndjson', 'json', 'csv'] as const satisfies readonly Format[];
export type TextFormat = (typeof TEXT_FORMATS)[number];

/** The formats of the files of exports. Parquet has no stream: readers begin with the end of the file. */
export type ExportFormat = Format | 'parquet';
export const EXPORT_FORMATS: readonly ExportFormat[] = [...FORMATS, 'parquet'];
/** The extension of the files of an export, and their media type. */
export const FILES: Readonly<
  Record<ExportFormat, { readonly extension: string; readonly contentType: string }>
> = {
  ndjson: { extension: 'ndjson', contentType: FORMS.ndjson.contentType },
  json: { extension: 'json', contentType: FORMS.json.contentType },
  csv: { extension: 'csv', contentType: FORMS.csv.contentType },
  arrow: { extension: 'arrows', contentType: ARROW_TYPE },
  parquet: { extension: 'parquet', contentType: PARQUET_TYPE },
};

/** A media type that a stream can have. */
export type StreamType = (typeof FORMS)[Format]['types'][number];
/** All media types of streams, the preferred one first. */
export const STREAM_TYPES: readonly StreamType[] = FORMATS.flatMap((format) => FORMS[format].types);
/** The format that a media type asks for. */
export function formatOfType(type: StreamType): Format {
  const found = FORMATS.find((format) => (FORMS[format].types as readonly string[]).includes(type));
  if (!found) throw new TypeError(`no format has the type ${type}`);
  return found;
}

/** The extensions of files, beside the names of the formats. */
const EXTENSIONS: ReadonlyMap<string, TextFormat> = new Map([['jsonl', 'ndjson']]);

/** The format that a file's name indicates. null when it indicates none. */
export function formatOfName(file: string): TextFormat | null {
  const extension = /\.([a-z]+)(?:\.(?:gz|br|zst))?$/i.exec(file)?.[1]?.toLowerCase() ?? '';
  return EXTENSIONS.get(extension) ?? TEXT_FORMATS.find((format) => format === extension) ?? null;
}
