import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { BSON } from '../../../src/store/values/bson.ts';
import { makeBookmark } from '../../../src/store/bookmark.ts';
import { openChromium, openTab } from '../../support/web/chromium.ts';
import { startCutter } from '../../support/faults/cutter.ts';
import { programIn } from '../../support/papers/documents.ts';
import { keyedServer } from '../../support/access/keyed.ts';
import { temporaryFolder } from '../../support/directory.ts';
import { program } from '../../support/process/programs.ts';
import { serverOn, type TestServer } from '../../support/process/server.ts';

const DOCUMENT = 'docs/changes.md';

async function put({ store }: TestServer, id: string, price: number): Promise<void> {
  await store.items.insert([BSON.serialize({ _id: id, category: 'x', price })], 'replace');
}

async function remove({ store }: TestServer, id: string): Promise<void> {
  await store.items.remove([makeBookmark({ _id: id })]);
}

/** Runs the program of the document with an argument. Returns the lines that it prints. It is killed after the test. */
async function linesOf(t: TestContext, language: string, command: string, argument: string) {
  const file = join(await temporaryFolder(t), 'client');
  await writeFile(file, programIn(DOCUMENT, language));
  const child = spawn(command, [file, argument], { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  t.after(async () => {
    const ended = once(child, 'exit');
    process.kill(-(child.pid ?? assert.fail()), 'SIGKILL'); // and what it has started
    await ended;
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return async () => (await lines.next()).value as string;
}

test('the shell program of the documents prints each change, also after it was cut', async (t) => {
  const shell = program(t, ['sh'], []);
  const curl = program(t, ['curl'], ['--version']);
  if (shell === null || curl === null) return;
  const server = await serverOn(t, { MONGODB_URI: '' });
  await put(server, 'before', 1);
  const cutter = await startCutter(t, server.url);
  let connections = 0;
  const polling = new Promise<void>((resolve) => {
    cutter.nextAfter = () => {
      if (++connections === 2) resolve(); // it asked for the changes: it knows from where on
      return connections === 2 ? 300 : Infinity;
    };
  });
  const next = await linesOf(t, 'sh', shell, `${cutter.url}/items`);
  await polling;
  await put(server, 'a', 1);
  assert.equal(await next(), '{"id":"a","category":"x","price":1}');
  assert.ok(connections > 2, 'it was cut before');
  await remove(server, 'a');
  assert.equal(await next(), '{"removed":{"id":"a"}}');
});

test('the Python program of the documents keeps a copy, also when it is cut or has to begin anew', async (t) => {
  const python = program(t, ['python3'], ['--version']);
  if (python === null) return;
  const server = await serverOn(t, { MONGODB_URI: '' }, { heartbeatMs: 50 });
  for (const id of ['a', 'b', 'c']) await put(server, id, 1);
  const cutter = await startCutter(t, server.url);
  const sizes = [700];
  cutter.nextAfter = () => sizes.shift() ?? Infinity;
  const next = await linesOf(t, 'python', python, `${cutter.url}/items/stream?follow=true`);
  const until = async (rows: string) => {
    for (let line = await next(); line !== rows; line = await next()) assert.match(line, /^\d$/);
  };
  await until('3');
  assert.deepEqual(sizes, [], 'it was cut');
  await remove(server, 'b');
  await until('2');
  await server.store.items.clear(new AbortController().signal);
  await put(server, 'd', 1);
  await until('1');
});

test('the page of the documents shows the changes of a set', async (t) => {
  const browser = await openChromium(t);
  if (!browser) return;
  const server = await serverOn(t, { MONGODB_URI: '' });
  await put(server, 'a', 1);
  const { page, errors } = await openTab(browser);
  await showDocument(page, server.url);
  await page.waitForFunction(`document.querySelector('p').textContent === 'connected'`);
  await put(server, 'a', 2);
  await page.waitForFunction(`document.querySelectorAll('li').length === 1`);
  await remove(server, 'a');
  await page.waitForFunction(`document.querySelectorAll('li').length === 2`);
  const shown: unknown = await page.evaluate(
    `[...document.querySelectorAll('li')].map((li) => li.textContent)`,
  );
  assert.deepEqual([shown, errors], [['{"id":"a","price":2}', 'a is gone'], []]);
});

test('the page of the documents sends a key, and says once why it is refused', async (t) => {
  const browser = await openChromium(t);
  if (!browser) return;
  const server = await keyedServer(t, 'sqlite', [{ name: 'ada' }, { name: 'bob', resources: ['users'] }], []);
  for (const [key, wanted] of [
    [null, /^Unauthorized: .*401.*option `key`/],
    ['secret-of-no-key', /^Unauthorized: /],
    ['secret-of-bob', /^NotFound: .*404/],
    ['secret-of-ada', /^connected$/],
  ] as const) {
    const { page, requests } = await openTab(browser);
    if (key !== null) await page.addInitScript(`sessionStorage.setItem('sluice-key', '${key}')`);
    await showDocument(page, server.url);
    await page.waitForFunction(`document.querySelector('p').textContent !== ''`);
    assert.match((await page.textContent('p')) ?? '', wanted);
    const asked = requests.filter((url) => url.includes('/items/'));
    assert.equal(asked.length, 1, asked.join(' '));
  }
});

test('the page of the documents says on another origin that CORS does not allow it, and asks no more', async (t) => {
  const browser = await openChromium(t);
  if (!browser) return;
  const server = await serverOn(t, { MONGODB_URI: '' });
  const { page, requests } = await openTab(browser);
  const body = programIn(DOCUMENT, 'html').replaceAll(/'(?=\/(?:clients|items))/g, `'${server.url}`);
  await page.route('http://other.example/', (route) => route.fulfill({ contentType: 'text/html', body }));
  await page.goto('http://other.example/');
  await page.waitForFunction(`document.querySelector('p').textContent !== ''`);
  assert.match((await page.textContent('p')) ?? '', /^TypeError: Failed to fetch .*sluice\.mjs$/);
  assert.deepEqual(requests, ['http://other.example/', `${server.url}/clients/sluice.mjs`]);
});

/** Opens the page of the document as one of the server. */
async function showDocument(page: Page, url: string): Promise<void> {
  await page.route('**/changes.html', (route) =>
    route.fulfill({ contentType: 'text/html', body: programIn(DOCUMENT, 'html') }),
  );
  await page.goto(`${url}/changes.html`);
}
