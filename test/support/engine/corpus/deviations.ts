import type { EngineName } from '../engines.ts';
import { named } from './case.ts';

/** The server neither answers nor closes the connection before the engine's own timeout. */
export const SILENT = 'silent';

/** The major version of Node, which includes the HTTP parser of node:http. */
const NODE = Number(process.versions.node.split('.')[0]);

/**
 * Outcomes of an engine that the case does not allow, by the case's name. JavaScript cannot prevent them, but
 * a strict proxy in front can. This table may only shrink: a test compares it with the actual outcomes.
 */
export const DEVIATIONS: Readonly<Record<EngineName, Readonly<Record<string, string>>>> = {
  uws: {
    'no version': SILENT,
    'a method alone': SILENT,
    'a greeting of SSH': SILENT,
    'a blank line before': SILENT,
    'two blank lines before': SILENT,
    'a target with a CR': SILENT,
    'a target with a DEL': 'GET /x\u007fy',
    'a target with a byte above 0x7f': 'GET /x\ufffd',
    'a target in UTF-8': 'GET /\u00e9',
    'a target of a broken UTF-8 byte': 'GET /\ufffd',
    [named("a field's name", '')]: 'GET /x',
    [named("a field's value", 'a\rb')]: SILENT,
    [named("a field's value", 'a\r')]: SILENT,
    [named("a field's value", 'a\x7fb')]: 'GET /x',
    [named('a host', 'a\xe9')]: 'GET /x',
    'a field ended by two CRs': SILENT,
    'a connection that ends': 'GET /x',
    [named('a length', '\xa05')]: 'POST /x <hello>',
    [named('a length', '\xe95')]: 'POST /x <hello>',
    'a length behind a CR': SILENT,
    [named('a transfer coding', '\xe9chunked')]: 'POST /x <hello>',
    [named('a transfer coding', 'chunked\xff')]: 'POST /x <hello>',
    [named('a transfer coding', '\xa0chunked')]: 'POST /x <hello>',
    [named('a transfer coding', '\rchunked')]: SILENT,
    'a transfer coding behind a CR': SILENT,
    'a transfer coding behind an empty name': 'POST /x then cut',
    [named("a chunk's size", ' 5')]: 'POST /x then cut',
    [named("a chunk's size", '\t5')]: 'POST /x then cut',
    [named("a chunk's size", '5 5')]: 'POST /x <hello>',
    [named("a chunk's size", '')]: 'POST /x then cut',
    [named("a chunk's size", '5\0')]: 'POST /x <hello>',
    [named("a chunk's size", '\x005')]: 'POST /x then cut',
    [named("a chunk's size", '5\xff')]: 'POST /x <hello>',
    [named("a chunk's size", '\xe95')]: 'POST /x then cut',
    [named("a chunk's size", '5\x0b')]: 'POST /x <hello>',
    "a chunk's size ended by two CRs": 'POST /x <hello>',
    'a chunk longer than its size': 'POST /x <hell> then cut',
    'a chunk shorter than its size': 'POST /x <hello\r>',
    'a chunk without a line end behind it': 'POST /x <hello>',
    'a chunk with a CR behind it': 'POST /x <hello>',
    'a chunk with two bytes behind it': 'POST /x <hello>',
    'a chunk with two line ends behind it': 'POST /x <hello> then cut',
    'a blank line before the first chunk': 'POST /x then cut',
    'a last chunk behind a blank': 'POST /x <hello>',
    'a last chunk ended by letters': 'POST /x <hello>',
    'a trailer without a colon': 'POST /x <hello> then cut',
    'a trailer with a blank before its colon': 'POST /x <hello> then cut',
    'an extension with a CR': SILENT,
    'an extension with a NUL': SILENT,
    'chunks with LF alone': 'POST /x <hello>, ET /behind then cut',
    'an extension with a LF alone': SILENT,
    'a trailer that is a length': 'POST /x <hello> then cut',
    'an extension of a chunk': SILENT,
    'a quoted extension of a chunk': '400',
    'an extension of the last chunk': SILENT,
    'a trailer': 'POST /x <hello> then cut',
    'two trailers': 'POST /x <hello> then cut',
  },
  node: {
    'an upgrade to another protocol': 'GET /x then cut',
    'two blanks before the target': 'GET /x',
    'two blanks before the version': 'GET /x',
    ...(NODE < 24 && { 'a length between tabs': '400' }),
    'chunked between tabs': '400',
  },
};
