import { jsonAnswer, STORE_PROBLEMS, type Answer, type Operation } from '../openapi/operation.ts';
import { EXPORT, EXPORT_BODY, EXPORT_LIST, REMOVED_EXPORT } from './export.ts';

const PATH = { id: { ...EXPORT.properties.id, examples: ['8f14e45fceea167a5a36dedd4bea2543'] } };

/** An export that was ordered. */
export const ORDERED: Answer = jsonAnswer('The export, which is on its way', EXPORT, [
  'Cache-Control',
  'Location',
  'Retry-After',
]);

export const LIST_EXPORTS: Operation = {
  id: 'listExports',
  tag: 'Exports',
  summary: "The client's exports, the newest first",
  answers: { 200: jsonAnswer('The exports', EXPORT_LIST, ['Cache-Control']) },
  problems: STORE_PROBLEMS,
};

export const ORDER_EXPORT: Operation = {
  id: 'orderExport',
  tag: 'Exports',
  summary: 'Orders a set of items as a file',
  description:
    'The file is made in the background. Ask for the export until its state is `complete`, `failed` or `cancelled`.',
  body: { schema: EXPORT_BODY, example: { category: 'Fair', format: 'csv', compression: 'gzip' } },
  answers: { 202: ORDERED },
  problems: [
    'malformed-json',
    'body-too-large',
    'unsupported-media-type',
    'invalid-body',
    'too-many-exports',
    'insufficient-storage',
    ...STORE_PROBLEMS,
  ],
};

export const GET_EXPORT: Operation = {
  id: 'getExport',
  tag: 'Exports',
  summary: 'One export: where it stands, and its file',
  path: PATH,
  answers: { 200: jsonAnswer('The export', EXPORT, ['Cache-Control']) },
  problems: ['invalid-url', 'not-found', ...STORE_PROBLEMS],
};

export const DELETE_EXPORT: Operation = {
  id: 'deleteExport',
  tag: 'Exports',
  summary: 'Cancels an export that is on its way, or removes one that is finished',
  path: PATH,
  headers: ['Prefer'],
  answers: {
    200: jsonAnswer('It is cancelled, or gone with its file', { anyOf: [EXPORT, REMOVED_EXPORT] }, [
      'Cache-Control',
    ]),
    204: {
      description: 'It is gone; as `Prefer: return=minimal` asks, nothing more is said',
      headers: ['Cache-Control', 'Preference-Applied'],
    },
  },
  problems: ['invalid-url', 'not-found', 'insufficient-storage', ...STORE_PROBLEMS],
};

const FILE_HEADERS = [
  'ETag',
  'Cache-Control',
  'Content-Disposition',
  'Accept-Ranges',
  'Repr-Digest',
] as const;
const BYTES = { schema: { type: 'string', format: 'binary' } };
const FILE = {
  'application/x-ndjson': BYTES,
  'application/json': { schema: { description: 'the rows, as an array' } },
  'text/csv': BYTES,
  'application/gzip': BYTES,
  'application/octet-stream': BYTES,
};

export const GET_EXPORT_FILE: Operation = {
  id: 'getExportFile',
  tag: 'Exports',
  summary: 'The file of a complete export, or a part of it',
  description: 'The compression is a part of the file: there is no Content-Encoding.',
  path: PATH,
  headers: ['Range', 'If-Range', 'If-None-Match'],
  answers: {
    200: { description: 'The whole file', headers: FILE_HEADERS, content: FILE },
    206: { description: 'The range asked for', headers: [...FILE_HEADERS, 'Content-Range'], content: FILE },
    304: { description: 'The file is the one that If-None-Match names', headers: ['ETag'] },
  },
  problems: [
    'invalid-url',
    'not-found',
    'export-not-complete',
    'invalid-header',
    'precondition-failed',
    'range-not-satisfiable',
    'too-many-streams',
    ...STORE_PROBLEMS,
  ],
};
