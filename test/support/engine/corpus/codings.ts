import { classed, either, last, named, post, refused, runs } from './case.ts';

const BODY = '5\r\nhello\r\n0\r\n\r\n';

/** Values of Transfer-Encoding that are not exactly `chunked` (RFC 9112, 6.1 and 6.3). */
const NO_CODINGS = [
  ...'xchunked|chunkedx|chunk ed|chunked foo|"chunked"|chunked;q=1|chunked;|: chunked|'.split('|'),
  ...'chunked, chunked|chunked, identity|identity|identity, chunked|gzip, chunked|gzip'.split('|'),
  ...",|, chunked|chunked,|'chunked'".split('|'),
  ...'chun\0ked|chunked\0|\x0bchunked|chunked\x0b|\x0cchunked|\xe9chunked|chunked\xff|\xa0chunked'.split('|'),
  ...['chun\xe2\x84\xaaed', '\rchunked', '\r\n chunked'], // with a Kelvin sign, behind a CR, folded
];

export const CODINGS = classed('smuggling', [
  ...NO_CODINGS.map((value) =>
    refused(named('a transfer coding', value), post([`Transfer-Encoding: ${value}`], BODY), 501),
  ),
  refused('a length and a transfer coding', post(['Content-Length: 5', 'Transfer-Encoding: chunked'], BODY)),
  refused('a transfer coding and a length', post(['Transfer-Encoding: chunked', 'Content-Length: 5'], BODY)),
  refused(
    'a length of zero and a transfer coding',
    post(['Content-Length: 0', 'Transfer-Encoding: chunked'], BODY),
  ),
  refused(
    'a length and a transfer coding that is none',
    post(['Content-Length: 5', 'Transfer-Encoding: x'], 'hello'),
    501,
  ),
  refused(
    'two transfer codings',
    post(['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], BODY),
    501,
  ),
  refused(
    'chunked, then identity',
    post(['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'], BODY),
    501,
  ),
  refused(
    'identity, then chunked',
    post(['Transfer-Encoding: identity', 'Transfer-Encoding: chunked'], BODY),
    501,
  ),
  refused('cow, then chunked', post(['Transfer-Encoding: cow', 'Transfer-Encoding: chunked'], BODY), 501),
  refused('a transfer coding with a blank before the colon', post(['Transfer-Encoding : chunked'], BODY)),
  refused('a transfer coding with a tab before the colon', post(['Transfer-Encoding\t: chunked'], BODY)),
  refused('a transfer coding with a blank before its name', post([' Transfer-Encoding: chunked'], BODY)),
  refused('a transfer coding with a NUL in its name', post(['Transfer\0-Encoding: chunked'], BODY)),
  refused(
    'a transfer coding with a semicolon in its name',
    post(['Transfer-Encoding;: chunked', 'Content-Length: 0']),
  ),
  refused('a transfer coding behind a CR', post(['X: x\rTransfer-Encoding: chunked'], BODY)),
  refused('a transfer coding behind an empty name', post([': x', 'Transfer-Encoding: chunked'], BODY)),
  refused('a transfer coding without a colon', post(['Transfer-Encoding chunked', 'Content-Length: 0'])),
  refused('a name cut by a line end', post(['Transfer-', 'Encoding: chunked', 'Content-Length: 0'])),
  last('a chunked GET', `GET /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${BODY}`, 'GET /x'),
  last(
    'a chunked HEAD',
    `HEAD /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${BODY}`,
    'HEAD /x',
  ),
  refused(
    'a chunked message of version 1.0',
    `POST /x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${BODY}`,
    505,
  ),
  either(
    'a transfer coding behind a LF alone',
    post(['X: x\nTransfer-Encoding: chunked'], BODY),
    'POST /x <hello>',
  ),
  runs('chunked', post(['Transfer-Encoding: chunked'], BODY), 'POST /x <hello>'),
  runs('Chunked', post(['Transfer-Encoding: Chunked'], BODY), 'POST /x <hello>'),
  runs('CHUNKED', post(['TRANSFER-ENCODING: CHUNKED'], BODY), 'POST /x <hello>'),
  runs('chunked between tabs', post(['Transfer-Encoding:\tchunked\t'], BODY), 'POST /x <hello>'),
  runs('a coding by another name', post(['Transfer_Encoding: chunked']), 'POST /x'),
  runs('a coding by a longer name', post(['X-Transfer-Encoding: chunked']), 'POST /x'),
]);
