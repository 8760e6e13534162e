import { count, listOf, namedObject, object, text, Type } from '../base/schema.ts';

/** What the document of all routes says of heads and index files: see base/edition/head.ts. */
const SHA256 = (description: string) => Type.String({ pattern: '^[0-9a-f]{64}$', description });
const CRC32 = (description: string) => Type.String({ pattern: '^[0-9a-f]{8}$', description });
const TIME = (description: string) => Type.String({ format: 'date-time', description });

const INDEX_ENTRY = namedObject('EditionIndexEntry', 'an index file', {
  name: SHA256('the SHA-256 of the file, at `{files}{name}.index.json`'),
  level: count('0: it lists chunks; above: it lists index files of the level below'),
  chunks: count('the chunks that it leads to'),
  rows: count('their rows'),
  bytes: count('their bytes as NDJSON'),
});
const CHUNK = namedObject('EditionChunk', 'a chunk: rows that follow one another in the order of their ids', {
  name: SHA256(
    'the SHA-256 of its rows as NDJSON. Its file is `{files}{name}.{format}`, and `{files}{name}-{schema}.parquet` for Parquet',
  ),
  rows: count('its rows'),
  bytes: count('the bytes of its rows as NDJSON'),
  crc32: CRC32('their CRC-32'),
  first: Type.Unknown({ description: 'the id of its first row' }),
  last: Type.Unknown({ description: 'the id of its last row' }),
  bound: text('for the server that makes the next edition'),
  sizes: Type.Record(Type.String(), count('bytes'), { description: 'the bytes of its file in each format' }),
});
const DELTA = object('the rows and removals between two editions', {
  from: SHA256('the edition before'),
  to: SHA256('the edition behind'),
  name: SHA256('the SHA-256 of its lines. Its file is `{files}{name}.delta.ndjson.gz`'),
  rows: count('its lines with rows'),
  removed: count('its lines with removals'),
  bytes: count('the bytes of its file'),
});

export const EDITION_HEAD = namedObject('EditionHead', 'the head of an edition', {
  edition: SHA256(
    'its name: the SHA-256 of the names of its chunks in order, each with a line feed behind it',
  ),
  resource: text('the name of the resource'),
  sequence: count('its number among those of the resource: the version of the Delta table'),
  at: TIME('when the rows were as they are here'),
  rows: count('all rows'),
  bytes: count('the bytes of all rows as NDJSON'),
  crc32: CRC32('their CRC-32'),
  changes: text('the cursor from which changes follow, as `since`'),
  target: count('the target of the bytes of a chunk, which says where chunks end'),
  formats: listOf('the formats of each chunk', text('a format')),
  schema: Type.Optional(text('the schema in the names of chunks of Parquet; missing where there are none')),
  files: text('where the files are: a URL, or a reference relative to `/{resource}/`. It ends with a slash'),
  index: listOf('index files in order: their chunks, in order, are the edition', INDEX_ENTRY),
  deltas: listOf(
    'from editions that were kept when this one was made, newest first: each `to` is this edition, or the `from` of the one before it',
    DELTA,
  ),
  kept: listOf(
    'the editions that were kept when this one was made, newest first, without itself',
    object('a kept edition', { edition: SHA256('its name'), at: TIME('its time') }),
  ),
});

export const EDITION_INDEX = Type.Union(
  [
    object('chunks', { level: Type.Literal(0), chunks: listOf('chunks in order', CHUNK) }),
    object('index files', {
      level: Type.Integer({ minimum: 1, description: 'their level and one more' }),
      index: listOf('index files in order', INDEX_ENTRY),
    }),
  ],
  { description: 'an index file' },
);
