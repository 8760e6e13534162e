import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { EditionHead } from '../../src/base/edition/head.ts';
import { temporaryFolder } from '../support/directory.ts';
import { itemEditions } from '../support/editions/edition-server.ts';
import { listening } from '../support/ports.ts';
import { runPullOf } from '../support/pull/pulling.ts';
import { openChromium, openTab } from '../support/web/chromium.ts';

/** Serves a folder with these headers, as a web server of another origin. `asked`: the paths. */
async function staticServer(t: TestContext, folder: string, headers: Record<string, string>) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    asked.push(path);
    const coded = headers['content-encoding'] !== undefined && !path.endsWith('.gz') ? 'identity' : undefined;
    const sent = { ...headers, ...(coded !== undefined && { 'content-encoding': coded }) };
    readFile(join(folder, path)).then(
      (bytes) => response.writeHead(200, sent).end(bytes),
      () => response.writeHead(404, sent).end(),
    );
  });
  return { url: `http://127.0.0.1:${await listening(t, server)}/edition.json`, asked };
}

/** A tab with a page of a server, and what runs a program there. `edition` and `text` (the rows joined) are at hand. */
async function pageOf(t: TestContext, url: string) {
  const browser = await openChromium(t);
  if (!browser) return null;
  const { page } = await openTab(browser);
  t.after(() => page.close());
  await page.goto(`${url}/livez`);
  return (source: string): Promise<unknown> =>
    page.evaluate(`(async () => {
      const { edition } = await import('/clients/sluice.mjs');
      const textOf = async (found) => {
        const pieces = [];
        for await (const { bytes } of found.chunks()) pieces.push(bytes);
        return new Blob(pieces).text();
      };
      const failureOf = (work) => work.then(String, ({ name, message }) => name + ': ' + message);
      ${source}
    })()`);
}

test('a page reads an edition of its server, and of a folder of another origin, and proves it', async (t) => {
  const at = await itemEditions(t, 'sqlite');
  const inPage = await pageOf(t, at?.server.url ?? '');
  if (!at || !inPage) return;
  const stream = (await at.stream()).toString();
  const head = (await (await at.server.get('/items/edition')).json()) as EditionHead;
  assert.equal(await inPage(`return textOf(edition('/items/edition'))`), stream);
  assert.deepEqual(
    await inPage(`
      let rows = 0;
      const found = edition('/items/edition/${head.edition}');
      for await (const row of found) if (row.id !== undefined) rows++;
      return [rows, (await found.head()).edition];
    `),
    [head.rows, head.edition],
  );
  const mirror = await temporaryFolder(t);
  const { code, text } = await runPullOf(['--mirror', mirror, at.url]);
  assert.equal(code, 0, text);
  // A web server may call the compression of a file a content coding: the browser has undone it then.
  for (const coding of [undefined, 'gzip']) {
    const headers = { 'access-control-allow-origin': '*', ...(coding && { 'content-encoding': coding }) };
    const { url } = await staticServer(t, mirror, headers);
    assert.equal(await inPage(`return textOf(edition('${url}'))`), stream);
  }
});

test('a page is told of chunks that are not their name, and of folders that allow no other origin', async (t) => {
  const at = await itemEditions(t, 'sqlite');
  const inPage = await pageOf(t, at?.server.url ?? '');
  if (!at || !inPage) return;
  const { url: closed } = await staticServer(t, at.folder, {});
  assert.match(
    String(await inPage(`return failureOf(textOf(edition('${closed}')))`)),
    /^CorsRefused: .* answers, but not to pages of .*Access-Control-Allow-Origin/,
  );
  const head = (await (await at.server.get('/items/edition')).json()) as EditionHead;
  const { name = '' } = (await at.chunks(head))[2] ?? {};
  const path = join(at.folder, `chunks/${name}.ndjson.gz`);
  const [other] = (await at.chunks(head)).slice(3);
  await writeFile(path, await readFile(join(at.folder, `chunks/${other?.name}.ndjson.gz`)));
  const { url, asked } = await staticServer(t, at.folder, { 'access-control-allow-origin': '*' });
  for (const address of [url, '/items/edition'])
    assert.match(
      String(await inPage(`return failureOf(textOf(edition('${address}')))`)),
      new RegExp(`^Refused: .*${name}.ndjson.gz is not what its name says`),
    );
  assert.equal(asked.filter((one) => one.includes(name)).length, 3, 'past the cache of the browser');
});

test('a page that stops reading asks for no more chunks', async (t) => {
  const at = await itemEditions(t, 'sqlite');
  const inPage = await pageOf(t, at?.server.url ?? '');
  if (!at || !inPage) return;
  const { url, asked } = await staticServer(t, at.folder, { 'access-control-allow-origin': '*' });
  const stopped = await inPage(`
    const leave = new AbortController();
    let chunks = 0;
    const reading = (async () => {
      for await (const chunk of edition('${url}', { signal: leave.signal }).chunks())
        if (++chunks === 2) leave.abort(new Error('left'));
    })();
    return [await reading.catch(({ message }) => message), chunks];
  `);
  assert.deepEqual(stopped, ['left', 2]);
  const fetched = asked.filter((path) => path.endsWith('.ndjson.gz')).length;
  assert.ok(fetched < 10, `${fetched} chunks`);
  assert.equal(
    await inPage(`for await (const chunk of edition('${url}').chunks()) break; return 'left';`),
    'left',
  );
});
