import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { temporaryFolder } from '../directory.ts';
import { serverOn, type StoreName } from '../process/server.ts';
import { testMongo } from '../store/mongo/mongod.ts';

/** A store and a folder of files for commands. */
export interface Shop {
  readonly environment: NodeJS.ProcessEnv & Record<string, string>;
  /** Writes a file and returns its path. */
  file(name: string, content: string): Promise<string>;
}

/** Null: a program is missing, and the test is skipped. */
export async function shopOn(t: TestContext, name: StoreName): Promise<Shop | null> {
  const directory = await temporaryFolder(t);
  const uri = name === 'sqlite' ? '' : await testMongo(t);
  if (uri === null) return null;
  return {
    environment: { DATA_DIR: join(directory, 'data'), MONGODB_URI: uri },
    file: async (file, content) => {
      await writeFile(join(directory, file), content);
      return join(directory, file);
    },
  };
}

/** A server as the command's last line says to start it. */
export function serve(t: TestContext, { environment }: Shop, resource: string) {
  const expose = environment.MONGODB_URI === '' ? {} : { EXPOSE: resource };
  return serverOn(t, { ...environment, ...expose });
}
