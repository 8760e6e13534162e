import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';

const FOLDER = join(import.meta.dirname, '../../node_modules/.cache/sluice-test');

/** Modules go on to find the files beside them where they were. */
const samePlace: Plugin = {
  name: 'same place',
  setup(build) {
    build.onLoad({ filter: /\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8')
        .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)))
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)),
      loader: 'ts',
    }));
  },
};

/** A TypeScript program as one file that Node runs as it is: started hundreds of times, that costs a third. Its path. */
export async function bundled(program: string): Promise<string> {
  await mkdir(FOLDER, { recursive: true });
  const outfile = join(FOLDER, `${basename(program, '.ts')}-${process.pid}.mjs`);
  await build({
    ...{ entryPoints: [program], outfile, plugins: [samePlace] },
    ...{
      bundle: true,
      packages: 'external',
      platform: 'node',
      format: 'esm',
      target: 'node20',
      logLevel: 'error',
    },
  });
  return outfile;
}
