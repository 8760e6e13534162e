import { createRequire } from 'node:module';

/** The version in package.json, which stands above src as well as above dist. */
export const { version: VERSION } = createRequire(import.meta.url)('../package.json') as { version: string };
