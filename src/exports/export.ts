import type { Parameter } from '../input/parameter.ts';
import { fieldsParameter, sortParameter, type Form } from '../resources/query/form.ts';
import { COMPRESSIONS, type Compression } from '../pipeline/pieces.ts';
import { FILE_FORMATS, OPTIONS } from '../resources/stream/formats/list.ts';
import {
  count,
  listOf,
  named,
  namedObject,
  object,
  text,
  Type,
  wordOf,
  type Schema,
  type Static,
} from '../base/schema.ts';

export const STATES = ['queued', 'running', 'complete', 'failed', 'cancelled'] as const;
export type State = (typeof STATES)[number];

/** A member of a body that is what the stream's parameter is. */
function member({ schema, expected }: Parameter<unknown>) {
  return Type.Optional(Type.Unsafe<Member>({ ...schema, description: expected }));
}

/** The value of a member of a body that a query has as text. */
export type Member = string | number | boolean | null | readonly string[];

/** How the rows are written: the same for every resource. */
const FORM = {
  format: Type.Optional(wordOf(FILE_FORMATS)),
  compression: Type.Optional(wordOf(COMPRESSIONS)),
  ...Object.fromEntries(
    OPTIONS.flatMap(({ parameter, member }) =>
      member ? [[parameter.name, Type.Optional(Type.Unsafe<Member>(member))]] : [],
    ),
  ),
};
/** The members of a body that are true or false. */
export const FLAGS = OPTIONS.flatMap(({ parameter, member }) =>
  member?.type === 'boolean' ? [parameter.name] : [],
);

/** What every order may say, whatever its resource. */
const MEMBERS = {
  resource: Type.Optional(
    text('the name of a resource of GET /resources; may be absent if the client has only one'),
  ),
  ...FORM,
};

/** The body that orders an export of a resource that is asked by parameters of its own alone. */
export function closedBody({ parameters, docs }: Form) {
  return namedObject(
    `${docs.row.name}ExportBody`,
    `an object that says which ${docs.noun.many} to export, and how`,
    { ...MEMBERS, ...Object.fromEntries(parameters.map((one) => [one.name, member(one)])) },
  );
}

const FIELDS = {
  patternProperties: {
    '\\.in$': Type.Unsafe<Member>({
      type: ['string', 'number', 'boolean', 'null', 'array'],
      items: { type: 'string' },
      description: 'strings: several values of a field; or what its parameter has',
    }),
  },
  additionalProperties: Type.Unsafe<string | number | boolean | null>({
    type: ['string', 'number', 'boolean', 'null'],
    description: 'a string, a number, true, false or null: the value or bound of a field',
  }),
};

/** The body that orders an export of any other resource: the names of its stream's query, and the compression. */
export const OPEN_BODY = named(
  'ResourceExportBody',
  Type.Object(
    { ...MEMBERS, sort: member(sortParameter), fields: member(fieldsParameter) },
    { ...FIELDS, description: 'an object that says which rows of a resource to export, and how' },
  ),
);

const time = (description: string) => Type.String({ format: 'date-time', description });

const PROGRESS = object('the progress of the export', {
  rows: count('the number of rows that are written'),
  estimatedRows: Type.Optional(count('the estimated number of rows in the complete file')),
  bytes: count('the size of the file so far in bytes, after compression'),
});
const FILE = object('the complete file', {
  url: text('the URL of the file'),
  name: text('the file name for a download'),
  bytes: count('the size of the file in bytes'),
  rows: count('the number of rows in the file'),
  sha256: text('the SHA-256 of the file in 64 hexadecimal digits'),
  crc32: text('the CRC-32 of the file in 8 hexadecimal digits'),
});
const PROBLEM = object('the reason why the export failed', {
  type: text('a URL that explains the problem'),
  title: text('the kind of problem, in a few words'),
  status: Type.Integer({ description: 'the HTTP status code of this kind of problem' }),
  detail: text('what happened to this export'),
  code: text('the stable code of this kind of problem'),
});

export const EXPORT = namedObject('Export', 'an export', {
  id: Type.String({
    pattern: '^[0-9a-f]{32}$',
    description: 'the id of the export, the last segment of its URL',
  }),
  state: wordOf(STATES, 'the state of the export; complete, failed and cancelled are final'),
  request: Type.Object(
    { ...OPEN_BODY.properties, resource: text('the name of the resource') },
    { ...FIELDS, description: 'the request for this export, with defaults filled in' },
  ),
  consistency: Type.Optional(
    wordOf(
      ['live', 'snapshot'],
      'snapshot: the file has all rows as they were at one point in time; absent until the export runs',
    ),
  ),
  progress: PROGRESS,
  createdAt: time('the time at which the export was created'),
  finishedAt: Type.Optional(time('the time at which the export became complete, failed or cancelled')),
  expiresAt: Type.Optional(time('the time at which the server deletes the export and its file')),
  file: Type.Optional(FILE),
  changes: Type.Optional(
    text(
      'the cursor from which the changes of the exported rows follow; absent until the export is complete, and where there are no changes',
    ),
  ),
  problem: Type.Optional(PROBLEM),
});

export const ID: Readonly<Record<'id', Schema>> = {
  id: { ...EXPORT.properties.id, examples: ['8f14e45fceea167a5a36dedd4bea2543'] },
};

/** The value of Retry-After for clients that wait for an export. Seconds. */
export const LOOK_AGAIN_SECONDS = 1;

/** An export whose request has the texts of its query. Its JSON has numbers where the parameter is one. */
export type Export = Omit<Static<typeof EXPORT>, 'request'> & {
  readonly request: Readonly<Record<string, unknown>> & {
    readonly format: string;
    readonly compression: Compression;
  };
};

export const EXPORT_LIST = namedObject('ExportList', 'the exports of the client', {
  data: listOf('the exports, newest first', EXPORT),
});

export const REMOVED_EXPORT = namedObject('RemovedExport', 'the confirmation that an export was deleted', {
  id: EXPORT.properties.id,
  deleted: Type.Literal(true),
});
