import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type * as client from '../../clients/javascript/sluice.ts';
import { temporaryFolder } from '../support/directory.ts';
import { documentText } from '../support/papers/documents.ts';
import { program } from '../support/process/programs.ts';
import { serverOn } from '../support/process/server.ts';
import { startProxy } from '../support/faults/proxies.ts';
import { ordersOf, withOrders } from '../support/resources/orders.ts';
import { loading } from '../support/load/loading.ts';
import { runPullOf } from '../support/pull/pulling.ts';
import { openChromium, openTab } from '../support/web/chromium.ts';

const BUILT = join(import.meta.dirname, '../../src/web/clients/sluice.mjs');
const PYTHON = join(import.meta.dirname, '../../clients/python/src');
const run = promisify(execFile);

const CHANGES = {
  nginx: (sample: string) =>
    sample.replace(/ {2}location \/ \{[^]*\n\}\n$/, `${documentText('docs/ops/nginx-path.conf')}}\n`),
  haproxy: (sample: string) =>
    sample.replace(/ +http-request disable-l7/, `${documentText('docs/ops/haproxy-path.cfg')}$&`),
} as const;

for (const [name, HTTP_ENGINE] of [
  ['nginx', 'uws'],
  ['haproxy', 'node'],
] as const)
  test(`behind ${name} under a path, with the sample of the documents: clients and pages follow the links`, async (t) => {
    const settings = await withOrders(t, 'sqlite', ordersOf(300));
    const server = await serverOn(t, {
      ...settings,
      HTTP_ENGINE,
      TRUSTED_PROXIES: 'loopback',
      ALLOWED_HOSTS: 'sluice.example',
    });
    const proxy = await startProxy(t, name, [new URL(server.url).port], CHANGES[name]);
    if (!proxy) return;
    const root = `http://127.0.0.1:${proxy.port}`;
    const base = `${root}/data/v1`;
    assert.equal((await fetch(`${base}/livez`, { headers: { 'x-forwarded-prefix': '/evil' } })).status, 200);
    assert.equal((await fetch(`${base}/metrics`)).status, 404);
    assert.equal((await fetch(`${root}/orders`)).status, 404, 'nothing is beside the path');
    const slashed = await fetch(`${base}/orders/a%2Fb`, { headers: { 'x-forwarded-prefix': '/evil' } });
    const { instance } = (await slashed.json()) as { instance: string };
    assert.equal(
      instance,
      '/data/v1/orders/a%2Fb',
      'the id comes as it was sent, and the prefix is the proxy’s',
    );
    assert.equal((await fetch(base, { redirect: 'manual' })).status, 301);

    const all = await (await server.get('/orders/stream')).text();
    const copy = join(await temporaryFolder(t), 'copy.ndjson');
    const pulled = await runPullOf([`${base}/orders`, '--parallel', '3', '-o', copy]);
    assert.equal(pulled.code, 0, pulled.text);
    assert.equal(await readFile(copy, 'utf8'), all);

    const loaded = await loading([base, '--pages', '20/s', '--pullers', '1', '--for', '2s', '--ramp', '0s']);
    assert.deepEqual(loaded.result?.verdict.reasons, [], loaded.said);

    const { rows } = (await import(pathToFileURL(BUILT).href)) as typeof client;
    let seen = 0;
    for await (const row of rows(`${base}/orders`)) seen += typeof row === 'object' ? 1 : 0;
    assert.equal(seen, 300);

    const python = program(t, ['python3'], []);
    if (python !== null) {
      const code = `import sluice_client as s, urllib.request as u
print(sum(1 for _ in s.rows('${base}/orders')), len(u.urlopen(s.export('${base}/orders', format='ndjson')).read().splitlines()))`;
      const { stdout } = await run(python, ['-c', code], { env: { ...process.env, PYTHONPATH: PYTHON } });
      assert.equal(stdout.trim(), '300 300');
    }
    const page = await fetch(`${base}/orders?limit=2`);
    const next = /<([^>]*)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1] ?? '';
    assert.equal((await fetch(new URL(next, base))).status, 200);

    const browser = await openChromium(t);
    if (!browser) return;
    const { page: tab, errors, requests } = await openTab(browser);
    await tab.goto(`${base}/#/orders`);
    await tab.waitForSelector('#row-0:not(.coming)');
    await tab.getByRole('button', { name: 'Get all of it' }).click();
    await tab.locator('#snippet-programs').getByText('sluice pull').click();
    const code = (await tab.textContent('#snippet-code')) ?? '';
    assert.ok(
      code.includes(`${base}/clients/sluice-pull.mjs`) && code.includes(`'${base}/orders/stream`),
      code,
    );
    await tab.getByRole('button', { name: 'Export', exact: true }).click();
    const file = tab.getByRole('link', { name: /^Download, / });
    assert.match((await file.getAttribute('href')) ?? '', /^\/data\/v1\/exports\/\w+\/file$/);
    await tab.getByRole('link', { name: 'API reference' }).click();
    await tab.getByRole('heading', { name: 'sluice' }).first().waitFor();
    await tab.goto(`${base}/docs#tag/resources/GET/orders/values`);
    const answered = tab.waitForResponse((response) => response.url().includes('/orders/values'));
    await tab
      .getByRole('button', { name: /test request.*GET \/orders\/values\)/i })
      .first()
      .click();
    await tab.getByRole('button', { name: /^send/i }).first().click();
    assert.equal((await answered).status(), 200, 'the example is of a real row');
    assert.deepEqual(
      requests.filter(
        (url) => !url.startsWith(`${base}/`) && !url.startsWith('blob:') && !url.startsWith('data:'),
      ),
      [],
    );
    assert.deepEqual(errors, []);
  });
