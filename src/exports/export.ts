import { MAX_FIELDS, MAX_KEY_BYTES, SORTS } from '../items/query.ts';
import { FORMATS } from '../items/format.ts';
import { BOUND } from '../items/number.ts';
import { named, Type, type Static } from '../schema.ts';

export const COMPRESSIONS = ['none', 'gzip', 'br'] as const;
export type Compression = (typeof COMPRESSIONS)[number];

export const STATES = ['queued', 'running', 'complete', 'failed', 'cancelled'] as const;
export type State = (typeof STATES)[number];

const oneOf = <const T extends string>(words: readonly T[], description = `one of ${words.join(', ')}`) =>
  Type.Unsafe<T>({ type: 'string', enum: words, description });

const rows = (description: string) => Type.Integer({ minimum: 0, description });

const bound = Type.Number({ description: `${BOUND}; with a price sort only` });

/** The body that orders an export: the parameters of GET /items/stream, and the compression of the file. */
export const EXPORT_BODY = named(
  'ExportBody',
  Type.Object(
    {
      category: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: MAX_KEY_BYTES,
          description: `a text of 1 to ${MAX_KEY_BYTES} characters`,
        }),
      ),
      sort: Type.Optional(oneOf(SORTS)),
      min_price: Type.Optional(bound),
      max_price: Type.Optional(bound),
      fields: Type.Optional(
        Type.Array(Type.String({ minLength: 1, maxLength: MAX_KEY_BYTES, description: "a field's name" }), {
          minItems: 1,
          maxItems: MAX_FIELDS,
          uniqueItems: true,
          description: `1 to ${MAX_FIELDS} different names of fields`,
        }),
      ),
      format: Type.Optional(oneOf(FORMATS)),
      compression: Type.Optional(oneOf(COMPRESSIONS)),
      safe: Type.Optional(
        Type.Boolean({ description: 'true or false: whether CSV is disarmed for spreadsheets' }),
      ),
    },
    { additionalProperties: false, description: 'an object that says what is to be exported' },
  ),
);
export type ExportBody = Static<typeof EXPORT_BODY>;

/** An order whose bounds of the price are strings of digits. A number would lose some of them. */
export type ExportOrder = Omit<ExportBody, 'min_price' | 'max_price'> & {
  readonly min_price?: string;
  readonly max_price?: string;
};

const time = (description: string) => Type.String({ format: 'date-time', description });

/** An export as clients see it. */
export const EXPORT = named(
  'Export',
  Type.Object(
    {
      id: Type.String({ pattern: '^[0-9a-f]{32}$', description: 'what the URL ends in' }),
      state: oneOf(STATES, 'where it stands; queued and running are on their way, the others final'),
      request: Type.Composite([EXPORT_BODY], { description: 'what was ordered, with defaults filled in' }),
      consistency: Type.Optional(
        oneOf(
          ['live', 'snapshot'],
          'snapshot: all rows as they were at one point in time; told once the work has begun',
        ),
      ),
      progress: Type.Object(
        {
          rows: rows('rows that are safely in the file'),
          estimatedRows: Type.Optional(rows('about how many there will be')),
          bytes: rows('bytes of the file so far, compressed'),
        },
        { description: 'how far it is' },
      ),
      createdAt: time('when it was ordered'),
      finishedAt: Type.Optional(time('when it became complete, failed or cancelled')),
      expiresAt: Type.Optional(time('when it is removed, with its file')),
      file: Type.Optional(
        Type.Object(
          {
            url: Type.String({ description: 'where the file is' }),
            name: Type.String({ description: 'the name it is offered under' }),
            bytes: rows('its length'),
            rows: rows('its rows'),
            sha256: Type.String({ description: 'SHA-256 in 64 hexadecimal digits' }),
            crc32: Type.String({ description: 'CRC-32 in 8 hexadecimal digits' }),
          },
          { description: 'the whole file' },
        ),
      ),
      problem: Type.Optional(
        Type.Object(
          {
            type: Type.String({ description: 'where the problem is explained' }),
            title: Type.String({ description: 'the problem in general' }),
            status: Type.Integer({ description: 'the status such a problem has' }),
            detail: Type.String({ description: 'what happened here' }),
            code: Type.String({ description: 'its stable name' }),
          },
          { description: 'why it failed' },
        ),
      ),
    },
    { additionalProperties: false, description: 'an export' },
  ),
);
/** An export whose bounds are strings of digits. The serializer writes them as JSON numbers. */
export type Export = Omit<Static<typeof EXPORT>, 'request'> & { readonly request: ExportOrder };

export const EXPORT_LIST = named(
  'ExportList',
  Type.Object(
    { data: Type.Array(EXPORT, { description: 'the newest first' }) },
    { additionalProperties: false, description: "a client's exports" },
  ),
);

/** The confirmation of a removal. */
export const REMOVED_EXPORT = named(
  'RemovedExport',
  Type.Object(
    { id: EXPORT.properties.id, deleted: Type.Literal(true) },
    { additionalProperties: false, description: 'what was removed' },
  ),
);
export type RemovedExport = Static<typeof REMOVED_EXPORT>;
