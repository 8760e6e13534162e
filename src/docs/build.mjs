/**
 * Puts the reference page's script, Scalar's own bundle, beside this file: node src/docs/build.mjs [--if-missing] [--copy DIRECTORY]
 *
 * Scalar publishes it, with all it needs, inside its plugin for Fastify, which serves it: so it is asked for there. It comes
 * with the checkout's development dependencies and is no dependency of the installed package.
 */
import { existsSync } from 'node:fs';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const target = join(import.meta.dirname, 'scalar.js');

if (!process.argv.includes('--if-missing') || !existsSync(target)) {
  const { default: fastify } = await import('fastify');
  const { default: scalar } = await import('@scalar/fastify-api-reference');
  const app = fastify();
  await app.register(scalar, { routePrefix: '/docs', configuration: { url: '/openapi.json' } });
  const { statusCode, rawPayload } = await app.inject('/docs/js/scalar.js');
  if (statusCode !== 200 || rawPayload.length < 1e6) throw new Error(`no bundle: status ${statusCode}`);
  await writeFile(target, rawPayload);
  await app.close();
}
const copy = process.argv.indexOf('--copy');
if (copy > 0) {
  const directory = join(process.argv[copy + 1] ?? '', 'docs');
  await mkdir(directory, { recursive: true });
  await copyFile(target, join(directory, 'scalar.js'));
}
