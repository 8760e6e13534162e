import { classed, either, message, refused, runs } from './case.ts';

const START = 'GET /x HTTP/1.1';
const headed = (...lines: readonly string[]) => message(START, lines);
const hosted = (...lines: readonly string[]) => [START, ...lines, '', ''].join('\r\n');

/** Invalid names of a field. A name is a token (RFC 9110, 5.1). */
const NO_NAMES: readonly (readonly [name: string, field: string])[] = [
  ['empty', ''],
  ['a blank', ' '],
  ['with a blank inside', 'X Y'],
  ['with a blank behind', 'X '],
  ['with a tab inside', 'X\tY'],
  ['with a NUL', 'X\0'],
  ['with a CR', 'X\rY'],
  ['with brackets', 'X()'],
  ['with square brackets', 'X[]'],
  ['with braces', 'X{}'],
  ['with an at', 'X@Y'],
  ['with a slash', 'X/Y'],
  ['with a backslash', 'X\\Y'],
  ['with quotes', '"X"'],
  ['with a comma', 'X,Y'],
  ['with a semicolon', 'X;Y'],
  ['with an equals sign', 'X=Y'],
  ['with a question mark', 'X?'],
  ['with angles', '<X>'],
  ['with a DEL', 'X\x7f'],
  ['with a byte above 0x7f', 'X\xe9'],
];

/** Bytes that the value of a field must not contain (RFC 9110, 5.5). */
const NO_VALUES: readonly (readonly [name: string, value: string])[] = [
  ['a NUL', 'a\0b'],
  ['a CR', 'a\rb'],
  ['a CR at its end', 'a\r'],
  ['an escape', 'a\x1bb'],
  ['a DEL', 'a\x7fb'],
  ['a backspace', 'a\x08b'],
  ['a vertical tab', 'a\x0bb'],
];

/** Invalid hosts (RFC 9112, 3.2). */
const NO_HOSTS: readonly (readonly [name: string, host: string])[] = [
  ['a list', 'a, b'],
  ['two words', 'a b'],
  ['one with a tab', 'a\tb'],
  ['one with a path', 'a/b'],
  ['one with a query', 'a?b'],
  ['one with a fragment', 'a#b'],
  ['one with a user', 'user@a'],
  ['one with a scheme', 'http://a'],
  ['one with a NUL', 'a\0'],
  ['one with quotes', '"a"'],
  ['one with angles', '<a>'],
  ['one with a backslash', 'a\\b'],
  ['one with a byte above 0x7f', 'a\xe9'],
  ['one with a bracket', '[::1'],
  ['one with a port in letters', 'a:b'],
];

export const FIELDS = [
  ...classed('malformed', [
    ...NO_NAMES.map(([name, field]) => refused(`a field's name ${name}`, headed(`${field}: x`))),
    ...NO_VALUES.map(([name, value]) => refused(`a field's value with ${name}`, headed(`X: ${value}`))),
    ...NO_HOSTS.map(([name, host]) => refused(`a host: ${name}`, hosted(`Host: ${host}`))),
    refused('no host', hosted('X: y')),
    refused('two hosts', hosted('Host: a', 'Host: b')),
    refused('two equal hosts', hosted('Host: a', 'Host: a')),
    refused('two hosts in other letters', hosted('Host: a', 'HOST: b')),
    refused('a host folded', hosted('Host:', ' a')),
    refused('a host with a blank before the colon', hosted('Host : a')),
    refused('a field without a colon', headed('X')),
    refused('a field folded by a blank', headed('X: a', ' b')),
    refused('a field folded by a tab', headed('X: a', '\tb')),
    refused('a folded line before the first field', hosted(' X: a', 'Host: a')),
    refused('a line of blanks', headed('   ')),
    refused('a field ended by two CRs', headed('X: a\r')),
    refused('a CR alone for the end of the head', `${START}\r\nHost: a\r\n\rX: y\r\n\r\n`),
    refused('a head of 17 KB in one field', headed(`X: ${'y'.repeat(17_000)}`), 431),
    refused('a head of 17 KB in a name', headed(`${'X'.repeat(17_000)}: y`), 431),
    refused(
      'a head of 40 KB',
      headed(...Array.from({ length: 40 }, (_, n) => `X-${n}: ${'y'.repeat(1000)}`)),
      431,
    ),
    either('a field ended by LF alone', `${START}\r\nHost: a\nX: y\r\n\r\n`, 'GET /x'),
    either('200 fields', headed(...Array.from({ length: 200 }, (_, n) => `X-${n}: y`)), 'GET /x', 431),
    either('a head ended by LF alone', `${START}\r\nHost: a\r\n\n`, 'GET /x'),
  ]),
  ...classed('compliance', [
    ...'a.example a.example:8080 127.0.0.1:80 [::1] [::1]:80 A.EXAMPLE a_b xn--e1afmkfd'
      .split(' ')
      .map((host) => runs(`the host ${host}`, hosted(`Host: ${host}`), 'GET /x')),
    either('an empty host', hosted('Host:'), 'GET /x'),
    runs('a host behind other fields', hosted('X: y', 'Host: a'), 'GET /x'),
    runs('a field without a value', headed('X:'), 'GET /x'),
    runs('a field of blanks', headed('X:    '), 'GET /x'),
    runs('a field with a tab in its value', headed('X: a\tb'), 'GET /x'),
    runs('a field with colons in its value', headed('X: a:b:c'), 'GET /x'),
    runs('a field in Latin-1', headed('X: caf\xe9'), 'GET /x'),
    runs('a field in UTF-8', headed('X: caf\xc3\xa9'), 'GET /x'),
    runs('a name of every sign that a token has', headed("!#$%&'*+-.^_`|~09azAZ: x"), 'GET /x'),
    runs('a name called __proto__', headed('__proto__: x', 'constructor: y'), 'GET /x'),
    runs('60 fields', headed(...Array.from({ length: 60 }, (_, n) => `X-${n}: y`)), 'GET /x'),
    runs('a head of 12 KB', headed(`X: ${'y'.repeat(12_000)}`), 'GET /x'),
    runs('a field that is repeated', headed('X: a', 'X: b'), 'GET /x'),
    runs('an upgrade to another protocol', headed('Upgrade: h2c', 'Connection: Upgrade'), 'GET /x'),
    runs('a length that is hop-by-hop', headed('Connection: content-length'), 'GET /x'),
    runs('a connection that stays', headed('Connection: keep-alive'), 'GET /x'),
    runs('a connection that ends', headed('Connection: close'), 'GET /x then cut'),
    runs('Forwarded in other words', headed('X-Forwarded-For: 1.2.3.4', 'X-Forwarded-Host: evil'), 'GET /x'),
  ]),
];
