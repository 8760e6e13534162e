import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Finding } from '../../../src/base/finding.ts';
import { examineBucket } from '../../../src/store/bucket/examine.ts';
import { BucketConnection, type BucketRequest } from '../../../src/store/bucket/request.ts';
import { filesAt, placeOf } from '../../support/store/bucket/bucket.ts';
import { Seaweed, type PolicyAccount } from '../../support/store/bucket/seaweed.ts';

/** The bucket and the prefix of the document. */
const BUCKET = 'acme-exports';
const PREFIX = 'sluice';
/** SeaweedFS lets whoever may write a file abort its upload; AWS wants a right of its own for that. */
const NOT_ASKED_FOR: ReadonlySet<string> = new Set(['s3:AbortMultipartUpload']);

interface Statement {
  readonly Action: readonly string[];
}

interface Policy {
  readonly Statement: readonly Statement[];
}

/** What docs/production.md has for a bucket: its policy, its lifecycle and its CORS. */
async function documented(): Promise<readonly [Policy, object, object]> {
  const text = await readFile(join(import.meta.dirname, '../../../docs/production.md'), 'utf8');
  const section = text.split('\n## A bucket for exports\n')[1]?.split('\n## ')[0] ?? '';
  const blocks = [...section.matchAll(/```json\n([^]*?)```/g)].map(
    ([, json = '']) => JSON.parse(json) as object,
  );
  assert.equal(blocks.length, 3);
  return blocks as [Policy, object, object];
}

const accountOf = (name: string, policy: Policy): PolicyAccount => ({
  name,
  policy,
  keys: { S3_ACCESS_KEY_ID: `key-of-${name}`, S3_SECRET_ACCESS_KEY: `secret-of-${name}` },
});

/** The policy without one of its actions. */
function without(action: string, { Statement, ...rest }: Policy): Policy {
  const less = Statement.map((one) => ({ ...one, Action: one.Action.filter((other) => other !== action) }));
  return { ...rest, Statement: less };
}

/** The XML of a document that is JSON for the command line of AWS: members of a list have a name in the singular. */
function xmlOf(name: string, value: unknown): string {
  if (Array.isArray(value)) return value.map((one) => xmlOf(name.replace(/s$/, ''), one)).join('');
  const inner =
    typeof value === 'object' && value !== null
      ? Object.entries(value).map(([key, one]) => xmlOf(key, one))
      : [String(value)];
  return `<${name}>${inner.join('')}</${name}>`;
}

/** All values of a document that are no lists or objects. */
function leavesOf(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [String(value)];
  return Object.values(value).flatMap((one) => leavesOf(one));
}

/** Resolves when the bucket of the document is there. */
async function made(t: TestContext, { endpoint }: Seaweed): Promise<BucketConnection> {
  const owner = new BucketConnection(placeOf({ FILES: filesAt(BUCKET, endpoint, PREFIX) }));
  t.after(() => {
    owner.close();
  });
  await owner.ask({ method: 'PUT', key: '' });
  return owner;
}

async function examined(endpoint: string, { keys }: PolicyAccount): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  await examineBucket(placeOf({ FILES: filesAt(BUCKET, endpoint, PREFIX), ...keys }), (one) =>
    findings.push(one),
  );
  return findings;
}

test('the documented policy is what the server needs of a bucket, and nothing else', async (t) => {
  const [policy] = await documented();
  const actions = policy.Statement.flatMap(({ Action }) => Action).filter((one) => !NOT_ASKED_FOR.has(one));
  const least = accountOf('least', policy);
  const lacking = actions.map((action, n) => accountOf(`lacking${n}`, without(action, policy)));
  const weed = await Seaweed.start(t, [least, ...lacking]);
  if (!weed) return;
  const owner = await made(t, weed);
  const body = Buffer.from('of somebody else');
  const others = ['other/a', 'sluicex/a', 'a'];
  for (const key of others) await owner.ask({ method: 'PUT', key, body });
  const findings = await examined(weed.endpoint, least);
  assert.deepEqual(
    findings.filter(({ holds }) => !holds),
    [],
  );
  for (const [n, account] of lacking.entries())
    assert.ok(
      (await examined(weed.endpoint, account)).some(({ holds }) => !holds),
      `${actions[n]} is needed`,
    );
  const place = placeOf({ FILES: filesAt(BUCKET, weed.endpoint, PREFIX), ...least.keys });
  const connection = new BucketConnection(place);
  t.after(() => {
    connection.close();
  });
  const refused: BucketRequest[] = [
    ...others.flatMap((key): BucketRequest[] => [
      { method: 'GET', key },
      { method: 'PUT', key, body },
      { method: 'DELETE', key },
      { method: 'POST', key, query: { uploads: '' } },
    ]),
    ...['policy', 'cors', 'lifecycle'].map((what): BucketRequest => ({
      method: 'GET',
      key: '',
      query: { [what]: '' },
    })),
    { method: 'DELETE', key: '' },
  ];
  for (const request of refused)
    await assert.rejects(connection.ask(request), { code: 'AccessDenied' }, JSON.stringify(request));
});

test('the documented lifecycle and CORS are taken, and a page of that origin alone may read a link', async (t) => {
  const [, lifecycle, cors] = await documented();
  const weed = await Seaweed.start(t);
  if (!weed) return;
  const owner = await made(t, weed);
  for (const [what, root, value] of [
    ['lifecycle', 'LifecycleConfiguration', lifecycle],
    ['cors', 'CORSConfiguration', cors],
  ] as const) {
    const query = { [what]: '' };
    await owner.ask({ method: 'PUT', key: '', query, body: Buffer.from(xmlOf(root, value)) });
    const kept = await owner.ask({ method: 'GET', key: '', query });
    for (const text of leavesOf(value)) assert.ok(kept.includes(`>${text}<`), `${what} has ${text}`);
  }
  const key = `${PREFIX}/exports/a`;
  await owner.ask({ method: 'PUT', key, body: Buffer.from('0123456789') });
  const link = owner.link(key, 60, {});
  const asked = { 'access-control-request-method': 'GET', 'access-control-request-headers': 'range' };
  for (const [origin, allowed] of [
    ['https://app.example', 'https://app.example'],
    ['https://other.example', null],
  ] as const) {
    const before = await fetch(link, { method: 'OPTIONS', headers: { origin, ...asked } });
    assert.equal(before.headers.get('access-control-allow-origin'), allowed);
    assert.equal(before.headers.get('access-control-allow-headers'), allowed && 'range');
    const answer = await fetch(link, { headers: { origin, range: 'bytes=2-4' } });
    assert.equal(await answer.text(), '234');
    assert.equal(answer.headers.get('access-control-allow-origin'), allowed);
    assert.equal(answer.headers.get('access-control-expose-headers'), allowed && 'content-range, etag');
  }
});
