import { readFileSync } from 'node:fs';
import { asset } from '../asset.ts';

/** The version in package.json, which stands above src as well as above dist. */
export const { version: VERSION } = JSON.parse(readFileSync(asset('../package.json'), 'utf8')) as {
  version: string;
};
