import { classed, either, last, named, post, refused, runs, waits } from './case.ts';

/** Values of Content-Length that are not one number (RFC 9110, 8.6; RFC 9112, 6.3). */
const NO_LENGTHS = [
  ...'+5|-5|-0|0x5|0o5|0b1|5e0|5.0|1_0|five|5abc|"5"|(5)|5;|5;q=1|Infinity|'.split('|'),
  ...'5,|,5|5, 5|5, 0|5,5|5 5'.split('|'),
  ...'\x0b5|\x0c5|5\0|\x005|5\x7f|\xa05|\xe95|\xb2|\xd9\xa5'.split('|'), // superscript and Arabic digits, too
  ...['18446744073709551621', '340282366920938463463374607431768211456'], // 2^64 + 5, 2^128
];

export const LENGTHS = classed('smuggling', [
  ...NO_LENGTHS.map((value) =>
    refused(named('a length', value), post([`Content-Length: ${value}`], 'hello')),
  ),
  refused('two lengths', post(['Content-Length: 5', 'Content-Length: 0'], 'hello')),
  refused('two lengths, the other way round', post(['Content-Length: 0', 'Content-Length: 5'], 'hello')),
  refused('two equal lengths', post(['Content-Length: 5', 'Content-Length: 5'], 'hello')),
  refused('two lengths in other letters', post(['Content-Length: 5', 'content-length: 0'], 'hello')),
  refused('three lengths', post(['Content-Length: 5', 'Content-Length: 5', 'Content-Length: 5'], 'hello')),
  refused('a second length folded', post(['Content-Length: 5,', ' 0'], 'hello')),
  refused('a length with a blank before the colon', post(['Content-Length : 5'], 'hello')),
  refused('a length with a tab before the colon', post(['Content-Length\t: 5'], 'hello')),
  refused('a length with a blank before its name', post([' Content-Length: 5'], 'hello')),
  refused('a length with a NUL in its name', post(['Content\0-Length: 5'], 'hello')),
  refused('a length behind a CR', post(['X: x\rContent-Length: 5'], 'hello')),
  last('a GET with a length', `GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello`, 'GET /x'),
  last('a HEAD with a length', `HEAD /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello`, 'HEAD /x'),
  either('a length with zeros before', post(['Content-Length: 0005'], 'hello'), 'POST /x <hello>'),
  either('a length of 20 digits', post(['Content-Length: 00000000000000000005'], 'hello'), 'POST /x <hello>'),
  either('a length behind a LF alone', post(['X: x\nContent-Length: 5'], 'hello'), 'POST /x <hello>'),
  runs('a length', post(['Content-Length: 5'], 'hello'), 'POST /x <hello>'),
  runs('a length in capitals', post(['CONTENT-LENGTH: 5'], 'hello'), 'POST /x <hello>'),
  runs('a length without a blank', post(['Content-Length:5'], 'hello'), 'POST /x <hello>'),
  runs('a length between tabs', post(['Content-Length:\t5\t'], 'hello'), 'POST /x <hello>'),
  runs('a length between many blanks', post(['Content-Length:     5     '], 'hello'), 'POST /x <hello>'),
  runs('a length of zero', post(['Content-Length: 0']), 'POST /x'),
  runs('a GET with a length of zero', `GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`, 'GET /x'),
  runs('no length', post([]), 'POST /x'),
  runs(
    'a DELETE with a length',
    `DELETE /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello`,
    'DELETE /x',
  ),
  runs('a length by another name', post(['Content_Length: 5']), 'POST /x'),
  runs('a length of something else', post(['X-Content-Length: 5']), 'POST /x'),
  waits('a length that is never reached', post(['Content-Length: 900'], 'hello')),
  waits('a length of 2^53 + 1', post(['Content-Length: 9007199254740993'], 'hello')),
]);
