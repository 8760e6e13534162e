import { classed, either, message, named, refused, runs } from './case.ts';

const START = 'GET /x HTTP/1.1';
const headed = (...lines: readonly string[]) => message(START, lines);
const hosted = (...lines: readonly string[]) => [START, ...lines, '', ''].join('\r\n');

/** Invalid names of a field. A name is a token (RFC 9110, 5.1). */
const NO_NAMES = [
  ...'| |X Y|X |X()|X[]|X{}|X@Y|X/Y|X\\Y|"X"|X,Y|X;Y|X=Y|X?|<X>'.split('|'),
  ...['X\tY', 'X\0', 'X\rY', 'X\x7f', 'X\xe9'],
];

/** Bytes that the value of a field must not contain (RFC 9110, 5.5). */
const NO_VALUES = ['a\0b', 'a\rb', 'a\r', 'a\x1bb', 'a\x7fb', 'a\x08b', 'a\x0bb'];

/** Invalid hosts (RFC 9112, 3.2). */
const NO_HOSTS = [
  ...'a, b|a b|a/b|a?b|a#b|user@a|http://a|"a"|<a>|a\\b|[::1|a:b'.split('|'),
  ...['a\tb', 'a\0', 'a\xe9'],
];

export const FIELDS = [
  ...classed('malformed', [
    ...NO_NAMES.map((name) => refused(named("a field's name", name), headed(`${name}: x`))),
    ...NO_VALUES.map((value) => refused(named("a field's value", value), headed(`X: ${value}`))),
    ...NO_HOSTS.map((host) => refused(named('a host', host), hosted(`Host: ${host}`))),
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
