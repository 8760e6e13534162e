import { classed, either, named, post, refused, runs, waits } from './case.ts';

const chunked = (body: string) => post(['Transfer-Encoding: chunked'], body);

/**
 * Invalid sizes of a chunk: anything but a hexadecimal number (RFC 9112, 7.1). Each stands for `5`, since
 * five bytes follow.
 */
const NO_SIZES = [
  ...'0x5|+5|-5|-0|5,|5.0|0_5|5h|zz|"5"||;'.split('|'),
  ...' 5|\t5|5 5|5\0|\x005|5\xff|\xe95|5\x0b'.split('|'),
  ...['10000000000000005', 'f'.repeat(17)], // 2^64 + 5
];

export const CHUNKS = classed('smuggling', [
  ...NO_SIZES.map((size) =>
    refused(named("a chunk's size", size), chunked(`${size}\r\nhello\r\n0\r\n\r\n`), 413),
  ),
  refused("a chunk's size ended by a CR", chunked('5\rhello\r\n0\r\n\r\n')),
  refused("a chunk's size ended by two CRs", chunked('5\r\r\nhello\r\n0\r\n\r\n')),
  refused("a chunk's size ended by a CR and a letter", chunked('5\rXhello\r\n0\r\n\r\n')),
  refused('a chunk longer than its size', chunked('4\r\nhello\r\n0\r\n\r\n')),
  refused('a chunk shorter than its size', chunked('6\r\nhello\r\n0\r\n\r\n')),
  refused('a chunk without a line end behind it', chunked('5\r\nhello0\r\n\r\n')),
  refused('a chunk with a CR behind it', chunked('5\r\nhello\r0\r\n\r\n')),
  refused('a chunk with two bytes behind it', chunked('5\r\nhelloXX0\r\n\r\n')),
  refused('a chunk with two line ends behind it', chunked('5\r\nhello\r\n\r\n0\r\n\r\n')),
  refused('a blank line before the first chunk', chunked('\r\n5\r\nhello\r\n0\r\n\r\n')),
  refused('a last chunk behind a blank', chunked('5\r\nhello\r\n 0\r\n\r\n')),
  refused('a last chunk of 0x0', chunked('5\r\nhello\r\n0x0\r\n\r\n')),
  refused('a last chunk ended by letters', chunked('5\r\nhello\r\n0\r\nXX')),
  refused('a trailer without a colon', chunked('5\r\nhello\r\n0\r\nnothing\r\n\r\n')),
  refused('a trailer with a blank before its colon', chunked('5\r\nhello\r\n0\r\nX : y\r\n\r\n')),
  refused('an extension with a CR', chunked('5;a\rb\r\nhello\r\n0\r\n\r\n')),
  refused('an extension with a NUL', chunked('5;a=\0\r\nhello\r\n0\r\n\r\n')),
  either("a chunk's size ended by a LF alone", chunked('5\nhello\r\n0\r\n\r\n'), 'POST /x <hello>'),
  either('a chunk ended by a LF alone', chunked('5\r\nhello\n0\r\n\r\n'), 'POST /x <hello>'),
  either('chunks with LF alone', chunked('5\nhello\n0\n\n'), 'POST /x <hello>'),
  either("a blank behind a chunk's size", chunked('5 \r\nhello\r\n0\r\n\r\n'), 'POST /x <hello>'),
  either("a tab behind a chunk's size", chunked('5\t\r\nhello\r\n0\r\n\r\n'), 'POST /x <hello>'),
  either('an extension with a LF alone', chunked('5;a\nhello\r\n0\r\n\r\n'), 'POST /x <hello>'),
  either(
    'a trailer that is a length',
    chunked('5\r\nhello\r\n0\r\nContent-Length: 50\r\n\r\n'),
    'POST /x <hello>',
  ),
  runs('a chunk with zeros before its size', chunked('005\r\nhello\r\n0\r\n\r\n'), 'POST /x <hello>'),
  runs('a last chunk of several zeros', chunked('5\r\nhello\r\n000\r\n\r\n'), 'POST /x <hello>'),
  runs('a chunk of a size in small letters', chunked('a\r\nhellohello\r\n0\r\n\r\n'), 'POST /x <hellohello>'),
  runs('a chunk of a size in capitals', chunked('A\r\nhellohello\r\n0\r\n\r\n'), 'POST /x <hellohello>'),
  runs('chunks of a byte each', chunked('1\r\nh\r\n1\r\ne\r\n1\r\ny\r\n0\r\n\r\n'), 'POST /x <hey>'),
  runs('no chunk but the last', chunked('0\r\n\r\n'), 'POST /x'),
  runs(
    'chunks that look like requests',
    chunked('e\r\nGET / HTTP/1.1\r\n0\r\n\r\n'),
    'POST /x <GET / HTTP/1.1>',
  ),
  runs('an extension of a chunk', chunked('5;a=b\r\nhello\r\n0\r\n\r\n'), 'POST /x <hello>'),
  runs('a quoted extension of a chunk', chunked('5;a="b;c"\r\nhello\r\n0\r\n\r\n'), 'POST /x <hello>'),
  runs('an extension of the last chunk', chunked('5\r\nhello\r\n0;a\r\n\r\n'), 'POST /x <hello>'),
  runs('a trailer', chunked('5\r\nhello\r\n0\r\nX: y\r\n\r\n'), 'POST /x <hello>'),
  runs('two trailers', chunked('5\r\nhello\r\n0\r\nX: y\r\nZ: w\r\n\r\n'), 'POST /x <hello>'),
  waits("a chunk's size 2^32 + 5 in 17 digits", chunked('00000000100000005\r\nhello')),
  waits("a chunk's size sixteen times f", chunked('ffffffffffffffff\r\nhello')),
  waits('a chunk that never ends', chunked('ff\r\nhello')),
  waits('chunks without a last one', chunked('5\r\nhello\r\n')),
]);
