import { classed, either, message, named, refused, runs, waits } from './case.ts';

const line = (start: string) => message(start);

/** Versions that are not HTTP/1.1, or that are invalid (RFC 9112, 2.3). */
const NO_VERSIONS = [
  ...'HTTP/2.0 HTTP/3 HTTP/0.9 HTTP/1 HTTP/1. HTTP/.1 HTTP/1.1.1 HTTP/01.1 HTTP/1.10'.split(' '),
  ...[
    ...'HTTP/1,1 HTTP/1.1x HTTP/1.x HTTPS/1.1 http/1.1 Http/1.1 HTP/1.1'.split(' '),
    'HTTP/ 1.1',
    'HTTP /1.1',
  ],
  ...'HTTP HTTP/ /1.1 ICY/1.0 RTSP/1.0 HTTP/+1.1 HTTP/1.-1 HTTP/\xb2.0 HTTP/1.1\0 "HTTP/1.1"'.split(' '),
];

/** Invalid methods. A method is a token (RFC 9110, 5.6.2). */
const NO_METHODS = [
  ...'|(GET)|GET,|GET:|G/T|"GET"|G=T|G@T|GET POST'.split('|'),
  ...'G\0T|\0GET|GET\x7f|G\xc9T|GET\x1b|\xef\xbb\xbfGET'.split('|'),
];

const LINES = classed('malformed', [
  ...NO_VERSIONS.map((version) => refused(named('the version', version), line(`GET /x ${version}`), 505)),
  ...NO_METHODS.map((method) =>
    refused(named('a method', method), line(`${method} /x HTTP/1.1`), 405, 501, 505),
  ),
  refused('no version', line('GET /x'), 505),
  refused('no target', line('GET HTTP/1.1'), 505),
  refused('a method alone', line('GET'), 505),
  refused('a blank at the start', line(' GET /x HTTP/1.1'), 505),
  refused('a tab at the start', line('\tGET /x HTTP/1.1'), 505),
  refused('two blanks before the target', line('GET  /x HTTP/1.1'), 505),
  refused('a tab before the target', line('GET\t/x HTTP/1.1'), 505),
  refused('a vertical tab before the target', line('GET\x0b/x HTTP/1.1'), 505),
  refused('two blanks before the version', line('GET /x  HTTP/1.1'), 505),
  refused('a tab before the version', line('GET /x\tHTTP/1.1'), 505),
  refused('a blank behind the version', line('GET /x HTTP/1.1 '), 505),
  refused('a fourth word', line('GET /x HTTP/1.1 x'), 505),
  refused('a second request behind a CR', line('GET /x HTTP/1.1\rGET /y HTTP/1.1'), 505),
  refused('a NUL between requests', `\0${line('GET /x HTTP/1.1')}`, 505),
  refused('a greeting of TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', 505),
  refused('a greeting of SSH', 'SSH-2.0-OpenSSH_9.2\r\n\r\n', 505),
  refused('a preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505),
  refused(
    'a header of a proxy, in text',
    `PROXY TCP4 192.0.2.1 192.0.2.2 5 80\r\n${line('GET /x HTTP/1.1')}`,
    505,
  ),
  refused('mail', 'HELO example.org\r\nMAIL FROM:<a@example.org>\r\n\r\n', 505),
  refused('UTF-16', 'G\0E\0T\0 \0/\0 \0H\0T\0T\0P\0/\x001\0.\x001\0\r\0\n\0\r\0\n\0\r\n\r\n', 505),
  refused('a method of 20,000 letters', line(`${'G'.repeat(20_000)} /x HTTP/1.1`), 414, 431, 501, 505),
  refused('a target of 20,000 letters', line(`GET /${'x'.repeat(20_000)} HTTP/1.1`), 414, 431),
  refused('a query of 20,000 letters', line(`GET /?${'x'.repeat(20_000)} HTTP/1.1`), 414, 431),
  either('lines ended by LF alone', 'GET /x HTTP/1.1\nHost: a\n\n', 'GET /x', 505),
  either('a request line ended by LF alone', 'GET /x HTTP/1.1\nHost: a\r\n\r\n', 'GET /x', 505),
  { name: 'version 1.0', bytes: line('GET /x HTTP/1.0'), outcomes: ['505'] },
  either('version 1.2', line('GET /x HTTP/1.2'), 'GET /x', 505),
  either('a blank line before', `\r\n${line('GET /x HTTP/1.1')}`, 'GET /x', 505),
  either('two blank lines before', `\r\n\r\n${line('GET /x HTTP/1.1')}`, 'GET /x', 505),
  either('a LF before', `\n${line('GET /x HTTP/1.1')}`, 'GET /x', 505),
  waits('a head that never ends', 'GET /x HTTP/1.1\r\nHost: a\r\n'),
  waits('nothing', ''),
]);

const METHODS = 'POST PUT PATCH DELETE OPTIONS TRACE PROPFIND M-SEARCH QUERY FOO get Get'.split(' ');

const COMPLIANT = classed('compliance', [
  runs('GET', line('GET /x HTTP/1.1'), 'GET /x'),
  runs('HEAD', line('HEAD /x HTTP/1.1'), 'HEAD /x'),
  // Method names are case-sensitive. The application may refuse unknown ones.
  ...METHODS.map((method) =>
    either(`the method ${method}`, line(`${method} /x HTTP/1.1`), `${method} /x`, 501),
  ),
  runs(
    'three requests at once',
    line('GET /x HTTP/1.1') + line('GET /y HTTP/1.1') + line('GET /z HTTP/1.1'),
    'GET /x, GET /y, GET /z',
  ),
]);

export const REQUEST_LINES = [...LINES, ...COMPLIANT];
