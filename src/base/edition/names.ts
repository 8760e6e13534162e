/**
 * The files of editions, by their names in `/{resource}/chunks/`. Each name is a proof of the content, but for the schema of a
 * chunk of Parquet:
 *
 *     {sha256 of rows}.ndjson  .ndjson.gz  .ndjson.br     a chunk
 *     {sha256 of rows}-{schema}.parquet                   a chunk
 *     {sha256 of lines}.delta.ndjson.gz                   a delta
 *     {sha256 of file}.index.json                         an index file
 */
export const FORMATS = ['ndjson.gz', 'ndjson.br', 'ndjson', 'parquet'] as const;
export type ChunkFormat = (typeof FORMATS)[number];

const FILE =
  /^[0-9a-f]{64}(?:\.ndjson|\.ndjson\.gz|\.ndjson\.br|-[0-9a-f]{16}\.parquet|\.delta\.ndjson\.gz|\.index\.json)$/;
const NAME = /^[0-9a-f]{64}$/;

/** The name of a chunk's file. `schema`: of Parquet. */
export function chunkFile(name: string, format: string, schema = ''): string {
  return format === 'parquet' ? `${name}-${schema}.parquet` : `${name}.${format}`;
}

export function deltaFile(name: string): string {
  return `${name}.delta.ndjson.gz`;
}

export function indexFile(name: string): string {
  return `${name}.index.json`;
}

/** Whether a text has the form of a name of a file in `/{resource}/chunks/`. */
export function isEditionFile(text: string): boolean {
  return FILE.test(text);
}

/** Whether a text has the form of an edition's name. */
export function isEditionName(text: string): boolean {
  return NAME.test(text);
}

/** The text whose SHA-256 is the name of an edition: the names of its chunks in order, each with LF behind it. */
export function nameText(chunks: Iterable<string>): string {
  let text = '';
  for (const name of chunks) text += `${name}\n`;
  return text;
}
