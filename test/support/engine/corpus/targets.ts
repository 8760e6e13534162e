import { classed, either, message, refused, runs } from './case.ts';

const target = (text: string) => message(`GET ${text} HTTP/1.1`);

/**
 * Targets that must reach the application byte for byte. The server must not see another resource than the
 * proxy in front of it.
 */
const VERBATIM = [
  ...'/ // ///x //evil.example/x /x/ /x//y /. /.. /./x /x/.. /x/../y /x/./y /../../etc/passwd'.split(' '),
  ...(
    '/%2e /%2e%2e/x /%2E%2E/x /..%2fx /x%2fy /x%2Fy /x%5cy /x%252e /%00 /x%00.json ' + '/x%0d%0aX:%20y'
  ).split(' '),
  ...'/%zz /% /%2 /%u0041 /%c0%ae /%e0%80%af /%ff /x;y=z /..;/x /x;/../y /X /x. /x~ /x+y'.split(' '),
  ...[
    '/x?y',
    '/x??',
    '/x?y=/../z',
    '/x?a=1&a=2',
    '/x?%00',
    '/?x#y',
    '/x%23y',
    '/x%3fy',
    "/x'y",
    '/x!y',
    '/x*y',
    '/x,y',
    '/x:y',
    '/x@y',
  ],
];

export const TARGETS = [
  ...classed('normalisation', [
    ...VERBATIM.filter((text) => !text.includes('#')).map((text) =>
      runs(`the target ${text}`, target(text), `GET ${text}`),
    ),
    runs('the target /x?', target('/x?'), 'GET /x'),
    // Characters that no URI may contain, but that many clients send.
    ...['/x|y', '/x"y', '/x<y>', '/x{y}', '/x^y', '/x`y', '/x\\y', '/[x]'].map((text) =>
      either(`the target ${text}`, target(text), `GET ${text}`),
    ),
  ]),
  ...classed('malformed', [
    refused('a target without a slash', target('x'), 505),
    refused('a target that is a query', target('?x'), 505),
    refused('a target that is a fragment', target('#x'), 505),
    refused('a target with a backslash before', target('\\x'), 505),
    refused('a target with a dot before', target('./x'), 505),
    refused('a target that is a star, to GET', target('*'), 505),
    refused('a target with a NUL', target('/x\0y'), 505),
    refused('a target with a tab', target('/x\ty'), 505),
    refused('a target with a CR', target('/x\ry'), 505),
    refused('a target with a LF', target('/x\ny'), 505),
    refused('a target with an escape', target('/x\x1by'), 505),
    refused('a target with a DEL', target('/x\x7fy'), 505),
    refused('a target of two words', target('/x y'), 505),
    refused('CONNECT', message('CONNECT a:80 HTTP/1.1'), 405, 501, 505),
    either('a target with a fragment', target('/x#y'), 'GET /x#y'),
    either('a target with a byte above 0x7f', target('/x\xe9'), 'GET /x\xe9'),
    either('a target in UTF-8', target('/\xc3\xa9'), 'GET /\xc3\xa9'),
    either('a target of a broken UTF-8 byte', target('/\xff'), 'GET /\xff'),
  ]),
  ...classed('compliance', [
    either('a target with scheme and host', target('http://a/x'), 'GET /x', 505),
    either('a target with another host', target('http://evil.example/x'), 'GET /x', 505),
    either('a target of another scheme', target('ftp://a/x'), 'GET /x', 505),
    either('a star to OPTIONS', message('OPTIONS * HTTP/1.1'), 'OPTIONS *', 505),
  ]),
];
