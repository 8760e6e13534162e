import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { Timestamp, type Document, type MongoClient } from 'mongodb';
import { BSON } from '../../../../src/store/values/bson.ts';
import { LaneBroken } from '../../../../src/store/mongo/lane/message.ts';
import { openConnection } from '../../../../src/store/mongo/lane/connection.ts';
import { Scram } from '../../../../src/store/mongo/lane/scram.ts';
import { Slots } from '../../../../src/store/turns/slots.ts';
import { selfSigned } from '../../../support/load/certificate.ts';
import { openStore, testClient } from '../../../support/store/mongo/mongo.ts';
import { ownMongod } from '../../../support/store/mongo/mongod.ts';
import { PLENTY, readRows } from '../../../support/store/reading.ts';
import { temporaryFolder } from '../../../support/directory.ts';

const SIZE = { rows: 10, bytes: PLENTY };
const LANE = 'sluice data lane';
const ROW = BSON.serialize({ _id: 'a', category: 'a', price: 1 });

/** The client that holds the lane's connections, as the server reports it. */
async function laneUsers(client: MongoClient): Promise<string[]> {
  const stages = [{ $currentOp: { allUsers: true, idleConnections: true } }, { $match: { appName: LANE } }];
  const connections = await client.db('admin').aggregate(stages).toArray();
  return connections.flatMap(({ effectiveUsers }) =>
    ((effectiveUsers ?? []) as { user: string }[]).map(({ user }) => user),
  );
}

/** One read through a whole store, with the reported read paths and warnings. */
async function readOnce(t: TestContext, uri: string): Promise<readonly string[]> {
  const { store, notices, slots, warnings } = await openStore(t, uri);
  await store.items.insert([ROW], 'skip');
  const { rows } = await readRows(store.items, { sort: '_id', direction: 1 }, {}, SIZE);
  assert.deepEqual(rows, [Buffer.from(ROW)]);
  assert.equal(slots.taken, 0);
  const others = warnings.filter((warning) => !warning.includes('not a replica set'));
  assert.deepEqual(others, []);
  return notices.filter((notice) => !notice.startsWith('The server has created'));
}

test('the lane authenticates as the driver does: SCRAM-SHA-256, SCRAM-SHA-1, and names with special characters', async (t) => {
  const set = await ownMongod(t, { replicated: false, arguments: ['--auth'] });
  const member = set?.members[0];
  if (!set || !member) return;
  const as = (name: string, password: string, more = '') =>
    `mongodb://${encodeURIComponent(name)}:${encodeURIComponent(password)}@${member.host}/shop?directConnection=true&authSource=admin${more}`;
  const create = (createUser: string, pwd: string, more: Document = {}) => ({
    createUser,
    pwd,
    roles: ['root'],
    ...more,
  });
  await member.admin((client) => client.db('admin').command(create('root', 'pw')));
  const root = testClient(t, as('root', 'pw'));
  const users: [name: string, password: string, mechanisms: string[]][] = [
    ['old', 'p w', ['SCRAM-SHA-1']],
    ['new', 'p:@/', ['SCRAM-SHA-256']],
    ['both', 'pw', ['SCRAM-SHA-1', 'SCRAM-SHA-256']],
    ['n=a,b', '=,%', ['SCRAM-SHA-256']], // with such a name the driver itself fails by SCRAM-SHA-1
  ];
  for (const [name, password, mechanisms] of users) {
    await root.db('admin').command(create(name, password, { mechanisms }));
    for (const more of ['', ...mechanisms.map((mechanism) => `&authMechanism=${mechanism}`)]) {
      assert.deepEqual(await readOnce(t, as(name, password, more)), ['items are read over the data lane']);
      assert.ok((await laneUsers(root)).includes(name), `${name}${more} holds a connection of the lane`);
    }
  }

  await root.db('admin').command(create('accented', 'pässword'));
  assert.deepEqual(await readOnce(t, as('accented', 'pässword')), [
    'items are read through the driver, which is slower: the password is not ASCII and would require SASLprep',
  ]);
  assert.ok(!(await laneUsers(root)).includes('accented'));

  const open = { slots: new Slots(), connect: { tls: false, connectTimeoutMS: 5_000 }, silenceMs: 5_000 };
  for (const mechanism of ['SCRAM-SHA-1', 'SCRAM-SHA-256', 'DEFAULT']) {
    const scram = new Scram({ username: 'root', password: 'wrong', source: 'admin', mechanism });
    const opening = openConnection(member.host, { ...open, scram, applicationName: 'test' }, () => undefined);
    await assert.rejects(
      opening,
      (error) => error instanceof LaneBroken && error.message.includes('Authentication'),
    );
  }
  assert.equal(open.slots.taken, 0);
});

test('driver and lane exchange the signed cluster time of a replica set with authentication', async (t) => {
  const keyFile = join(await temporaryFolder(t), 'key');
  await writeFile(keyFile, 'sharedByAllMembers', { mode: 0o400 });
  const set = await ownMongod(t, { arguments: ['--keyFile', keyFile] });
  const member = set?.members[0];
  if (!set || !member) return;
  const root = { createUser: 'root', pwd: 'pw', roles: ['root'] };
  await member.admin((client) => client.db('admin').command(root));
  const uri = `mongodb://root:pw@${member.host}/shop?replicaSet=rs0&authSource=admin`;
  const { store, warnings } = await openStore(t, uri);
  const rows = Array.from({ length: 20 }, (_, n) => BSON.serialize({ _id: n, category: 'a', price: 1 }));
  for (const [n, row] of rows.entries()) {
    await store.items.insert([row], 'fail');
    const read = await readRows(store.items, { sort: '_id', direction: 1 }, {}, { rows: 100, bytes: PLENTY });
    assert.equal(read.rows.length, n + 1);
  }
  const client = testClient(t, uri);
  assert.ok((await laneUsers(client)).includes('root'));
  await client.db().command({ profile: 2 });
  await readRows(store.items, { sort: 'price', direction: 1 }, {}, SIZE);
  const noted = await client.db().collection('system.profile').findOne({ appName: LANE });
  const command = noted?.command as Document;
  const { clusterTime, signature } = command.$clusterTime as Document;
  assert.ok(clusterTime instanceof Timestamp && (signature as { keyId: unknown }).keyId);
  assert.deepEqual(warnings, []);
});

/** A certificate for 127.0.0.1 that has signed itself: as the CA, and with its key in one file, as mongod requires. */
async function makeCertificate(t: TestContext): Promise<{ authority: string; server: string }> {
  const directory = await temporaryFolder(t);
  const { key, certificate } = await selfSigned(directory);
  const server = join(directory, 'server.pem');
  await writeFile(server, Buffer.concat([await readFile(key), await readFile(certificate)]));
  return { authority: certificate, server };
}

test('the lane uses TLS, and only with a server whose certificate is signed by the CA in the URI', async (t) => {
  const own = await makeCertificate(t);
  const other = await makeCertificate(t);
  const files = ['--tlsCertificateKeyFile', own.server, '--tlsCAFile', own.authority];
  const noCertificate = '--tlsAllowConnectionsWithoutCertificates';
  const set = await ownMongod(t, {
    replicated: false,
    arguments: ['--tlsMode', 'preferTLS', ...files, noCertificate], // the code that starts it connects without TLS
  });
  const member = set?.members[0];
  if (!set || !member) return;
  await member.admin((client) => client.db('admin').command({ setParameter: 1, tlsMode: 'requireTLS' }));
  const uri = `mongodb://${member.host}/shop?directConnection=true&tls=true&tlsCAFile=${encodeURIComponent(own.authority)}`;
  assert.deepEqual(await readOnce(t, uri), ['items are read over the data lane']);
  const client = testClient(t, uri);
  const stages = [{ $currentOp: { allUsers: true, idleConnections: true } }, { $match: { appName: LANE } }];
  assert.ok((await client.db('admin').aggregate(stages).toArray()).length > 0);

  const slots = new Slots();
  for (const tls of [{ tls: true, ca: await readFile(other.authority) }, { tls: true }, { tls: false }]) {
    const options = {
      slots,
      connect: { ...tls, connectTimeoutMS: 5_000 },
      scram: null,
      applicationName: 'test',
      silenceMs: 5_000,
    };
    await assert.rejects(
      openConnection(member.host, options, () => undefined),
      LaneBroken,
    );
  }
  assert.equal(slots.taken, 0);
});
