import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';
import fc from '../support/fast-check.ts';
import { createClientReader } from '../../src/access/client.ts';
import type { Request, Serve } from '../../src/engine/edge.ts';
import { canonicalAddress, parseTrustedProxies } from '../../src/access/proxies.ts';
import { serveWith, text, whyNoUws, type EngineName } from '../support/engine/engines.ts';

function reader(trustedProxies?: string) {
  const { trusts, faults } = parseTrustedProxies(trustedProxies);
  assert.deepEqual(faults, []);
  const warnings: string[] = [];
  const read = createClientReader({ trusts, onWarning: (message) => warnings.push(message) });
  const client = (address: string, headers: Request['headers'] = {}) => read({ address, headers });
  return { client, warnings };
}

/** Spellings of an address -> its client. */
const SAME: [client: string, ways: readonly string[]][] = [
  [
    '192.0.2.7',
    [
      '192.0.2.7',
      '::ffff:192.0.2.7',
      '::FFFF:192.0.2.7',
      '::ffff:c000:207',
      '0:0:0:0:0:ffff:192.0.2.7',
      '0000:0000:0000:0000:0000:ffff:c000:0207',
      '0::ffff:192.0.2.7',
      '::ffff:192.0.2.7%eth0',
    ],
  ],
  [
    '2001:db8:1:2::/64',
    [
      '2001:db8:1:2::1',
      '2001:DB8:1:2::1',
      '2001:0db8:0001:0002:0000:0000:0000:0001',
      '2001:db8:1:2::2',
      '2001:db8:1:2:ffff:ffff:ffff:ffff',
      '2001:db8:1:2:aaaa:bbbb:192.0.2.7',
      '2001:db8:1:2::1%eth0',
      '2001:db8:1:2::',
    ],
  ],
  ['2001:db8:0:0::/64', ['2001:db8::1', '2001:db8:0::1:2', '2001:db8:0:0:1::']],
  ['0:0:0:0::/64', ['::1', '0000:0000:0000:0000:0000:0000:0000:0001', '::', '::192.0.2.7']],
  ['fe80:0:0:0::/64', ['fe80::1', 'fe80::1%lo', 'FE80::2%eth0', 'fe80:0:0::a:b:c:d']],
];

const OTHERS = ['2001:db8:1:3::1', '2001:db8:1::2', '192.0.2.8', '1:ffff:192.0.2.7::'];

test('an address is one client however it is written, as a peer and behind a proxy', () => {
  for (const [expected, ways] of SAME) {
    for (const way of ways) {
      assert.equal(reader().client(way), expected, way);
      const { client } = reader('203.0.113.1');
      for (const entry of [way, `[${way}]`, `[${way}]:4711`, `\t ${way} `, `10.9.9.9,${way}`, `${way}, `]) {
        assert.equal(client('203.0.113.1', { 'x-forwarded-for': entry }), expected, entry);
      }
    }
    for (const other of OTHERS) assert.notEqual(reader().client(other), expected);
  }
  const { client } = reader('203.0.113.1');
  assert.equal(client('203.0.113.1', { 'x-forwarded-for': '192.0.2.7:4711' }), '192.0.2.7');
});

test('an IPv6 client is its first 64 bits, with or without compressed zeros', () => {
  const { client } = reader();
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.constant(0), fc.nat(0xffff)), { minLength: 8, maxLength: 8 }),
      (parts) => {
        const long = parts.map((part) => part.toString(16).padStart(4, '0')).join(':');
        const short = parts.map((part) => part.toString(16)).join(':');
        const mapped = parts.slice(0, 5).every((part) => part === 0) && parts[5] === 0xffff;
        fc.pre(!mapped);
        const network = `${parts
          .slice(0, 4)
          .map((part) => part.toString(16))
          .join(':')}::/64`;
        for (const way of [long, short, long.toUpperCase(), canonicalAddress(long) ?? '']) {
          assert.equal(client(way), network);
        }
      },
    ),
    { numRuns: process.env.LONG ? 100_000 : 500 },
  );
});

/** Headers with which an untrusted client tries to be taken for another one. It stays the same client. */
const FORGERIES: Record<string, string>[] = [
  { 'x-forwarded-for': '198.51.100.1' },
  { 'x-forwarded-for': '198.51.100.1, 198.51.100.2' },
  { 'x-forwarded-for': '127.0.0.1' },
  { 'x-forwarded-for': '10.0.0.1, 10.0.0.1' },
  { 'x-forwarded-for': '' },
  { 'x-forwarded-for': ',' },
  { 'x-forwarded-for': '::1' },
  { 'x-forwarded-for': 'unknown' },
  { 'x-forwarded-for': `${'1.2.3.4,'.repeat(2000)}1.2.3.4` },
  { forwarded: 'for=198.51.100.1' },
  { forwarded: 'for="[2001:db8::1]"', 'x-forwarded-for': '198.51.100.3' },
  { 'x-real-ip': '198.51.100.1' },
  { 'true-client-ip': '198.51.100.1', 'cf-connecting-ip': '198.51.100.1', 'x-client-ip': '198.51.100.1' },
];

test('forwarded headers of a peer that is not trusted change nothing, whatever they contain', () => {
  for (const trusted of [undefined, '10.0.0.0/8, loopback', '203.0.113.8', '2001:db8::/32']) {
    for (const peer of ['203.0.113.9', '::ffff:203.0.113.9', '2001:db9::5']) {
      for (const headers of FORGERIES) {
        const { client } = reader(trusted);
        assert.equal(client(peer, headers), client(peer), JSON.stringify(headers).slice(0, 80));
      }
    }
  }
});

/** X-Forwarded-For at 10.0.0.1, which is trusted together with 10.0.0.0/8 and ::1 -> the client. */
const CHAINS: [header: string, client: string][] = [
  ['192.0.2.7', '192.0.2.7'],
  ['198.51.100.1, 192.0.2.7', '192.0.2.7'],
  ['198.51.100.1, 192.0.2.7, 10.0.0.2, 10.200.0.3', '192.0.2.7'],
  ['192.0.2.7,::ffff:10.0.0.2', '192.0.2.7'],
  ['192.0.2.7, [::1]:80', '192.0.2.7'],
  ['10.0.0.9, 10.0.0.2', '10.0.0.9'],
  ['192.0.2.7 ,\t10.0.0.2', '192.0.2.7'],
  [', ,192.0.2.7,, 10.0.0.2,', '192.0.2.7'],
  // An entry that is not an address ends the reading at the proxy that wrote it.
  ['', '10.0.0.1'],
  [' ,,', '10.0.0.1'],
  ['unknown', '10.0.0.1'],
  ['192.0.2.7, _hidden', '10.0.0.1'],
  ['192.0.2.7, unknown, 10.0.0.2', '10.0.0.2'],
  ['for=192.0.2.7', '10.0.0.1'],
  ['"192.0.2.7"', '10.0.0.1'],
  ['192.0.2.07', '10.0.0.1'],
  ['0300.0.2.7', '10.0.0.1'],
  ['0xc0000207', '10.0.0.1'],
  ['192.0.2.7/32', '10.0.0.1'],
  ['192.0.2.7:', '10.0.0.1'],
  ['[192.0.2.7', '10.0.0.1'],
  ['1'.repeat(9000), '10.0.0.1'],
];

test('a trusted proxy is believed: its chain is read from the right up to the first untrusted address', () => {
  const { client, warnings } = reader('10.0.0.0/8, ::1');
  for (const [header, expected] of CHAINS) {
    assert.equal(client('10.0.0.1', { 'x-forwarded-for': header }), expected, header.slice(0, 60));
    assert.equal(
      client('::ffff:10.0.0.1', { 'x-forwarded-for': header }),
      expected,
      'on a socket of both families',
    );
    const forged = `198.51.100.1,127.0.0.1,${header}`;
    if (!['10.0.0.9, 10.0.0.2', '', ' ,,'].includes(header))
      assert.equal(
        client('10.0.0.1', { 'x-forwarded-for': forged }),
        expected,
        'an entry that the client wrote itself',
      );
  }
  assert.equal(client('10.0.0.1', { 'x-forwarded-for': '10.0.0.2,'.repeat(1000) }), '10.0.0.2');
  assert.deepEqual(warnings, []);
});

test('forwarded headers from untrusted peers cause one warning per server run, without their contents', () => {
  const { client, warnings } = reader('10.0.0.1');
  for (let i = 0; i < 5; i++) client(`203.0.113.${i}`, { 'x-forwarded-for': 'secret\r\n' });
  client('203.0.113.9', { forwarded: 'for=192.0.2.7' });
  assert.deepEqual(warnings, [
    'ignored the X-Forwarded-For header from 203.0.113.0, which TRUSTED_PROXIES does not list: all clients behind it count as one (logged once)',
  ]);
  const second = reader('10.0.0.1');
  assert.equal(second.client('10.0.0.1', { forwarded: 'for=192.0.2.7' }), '10.0.0.1');
  assert.match(second.warnings.join(), /^ignored the Forwarded header from 10\.0\.0\.1/);
  const third = reader();
  third.client('\r\n{"level":30}', { 'x-forwarded-for': '1' });
  assert.match(third.warnings.join(), /^ignored the X-Forwarded-For header from unknown/);
});

test('TRUSTED_PROXIES accepts addresses, ranges and words, and reports every fault', () => {
  const trusted: [setting: string, yes: string[], no: string[]][] = [
    ['', [], ['127.0.0.1', '::1', '10.0.0.1']],
    ['loopback', ['127.0.0.1', '127.9.9.9', '::1'], ['128.0.0.1', '::2', '10.0.0.1']],
    ['Private', ['10.1.2.3', '172.31.0.1', '192.168.9.9', 'fd00::1'], ['172.32.0.1', '11.0.0.1', 'fe80::1']],
    ['192.0.2.0/25', ['192.0.2.127'], ['192.0.2.128']],
    ['::ffff:192.0.2.7', ['192.0.2.7'], ['192.0.2.8']],
    ['2001:DB8::/33', ['2001:db8:7fff::1'], ['2001:db8:8000::1']],
    ['192.0.2.1, 2001:db8::1 ,loopback,', ['192.0.2.1', '2001:db8::1', '::1'], ['2001:db8::2']],
    ['0.0.0.0/0', ['203.0.113.9'], ['::1']],
  ];
  for (const [setting, yes, no] of trusted) {
    const { trusts, faults } = parseTrustedProxies(setting);
    assert.deepEqual(faults, []);
    for (const address of yes) assert.equal(trusts(address), true, `${setting}: ${address}`);
    for (const address of no) assert.equal(trusts(address), false, `${setting}: ${address}`);
  }
  const wrong = [
    '10.0.0.0/33',
    '::1/129',
    '10.0.0',
    'proxy.local',
    '10.0.0.1/',
    '10.0.0.0/8/8',
    '10.0.0.0/-1',
    '*',
  ];
  wrong.push('::ffff:10.0.0.0/104', '010.0.0.1', '10.0.0.0/8 192.0.2.1');
  const { faults } = parseTrustedProxies(['loopback', ...wrong].join(','));
  assert.equal(faults.length, wrong.length);
  for (const [i, fault] of faults.entries()) {
    assert.match(
      fault,
      /^TRUSTED_PROXIES must be addresses, ranges such as 10.0.0.0\/8, or loopback, private; got/,
    );
    assert.ok(fault.includes(JSON.stringify(wrong[i])));
  }
});

test('the cache of addresses does not keep long headers in memory', () => {
  const { client } = reader('loopback');
  const before = process.memoryUsage.rss();
  for (let i = 0; i < 10_000; i++) {
    const address = [111, 100, 100 + (i >> 7), 100 + (i & 127)].join('.');
    // A new ASCII string each time, as engines pass it. If kept, they would take 200 MB.
    const header = Buffer.alloc(20_000, 'x').toString('latin1') + `, ${address}`;
    assert.equal(client('127.0.0.1', { 'x-forwarded-for': header }), address);
  }
  const grown = (process.memoryUsage.rss() - before) / 1e6;
  assert.ok(grown < 100, `${grown} MB`);
});

for (const engine of ['uws', 'node'] satisfies EngineName[])
  test(`clients of ${engine} have the same addresses on an IPv4 and on a dual-stack listener`, async (t) => {
    const reason = engine === 'uws' ? whyNoUws() : null;
    if (reason !== null) {
      t.skip(reason);
      return;
    }
    const { client } = reader();
    const hasIPv6 = Object.values(networkInterfaces()).some((all) =>
      all?.some(({ address }) => address === '::1'),
    );
    if (!hasIPv6) t.diagnostic('no ::1 on this machine: asked from IPv4 alone');
    const oneFamily = '127.0.0.1';
    const both = hasIPv6 ? '::' : '0.0.0.0';
    for (const host of [oneFamily, both]) {
      const named: Serve = ({ address, headers }) => Promise.resolve(text(client(address, headers)));
      const { port, errors } = await serveWith(t, engine, named, { host });
      for (const source of ['127.0.0.1', '127.0.0.2', '::1']) {
        if (source === '::1' && host !== '::') continue;
        const expected = source === '::1' ? '0:0:0:0::/64' : source;
        assert.equal(await ask(port, source), expected, `${source} on ${host}`);
      }
      assert.deepEqual(errors, []);
    }
  });

/** The body of an answer on a connection that comes from `source`. */
async function ask(port: number, source: string): Promise<string> {
  const host = source.includes(':') ? '::1' : '127.0.0.1';
  const socket = connect({ port, host, localAddress: source });
  await once(socket, 'connect');
  assert.equal((socket.address() as AddressInfo).address, source);
  socket.write(
    'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Forwarded-For: 198.51.100.1\r\n\r\n',
  );
  let received = '';
  for await (const chunk of socket) received += String(chunk);
  return received.split('\r\n\r\n')[1] ?? '';
}
