import type { StoreSettings } from '../server/open-store.ts';

/** The store that the settings name, for a question to its operator. It contains no password. */
export function placeOf({ MONGODB_URI, DATA_DIR }: Pick<StoreSettings, 'MONGODB_URI' | 'DATA_DIR'>): string {
  if (MONGODB_URI === undefined) return `the embedded store in ${DATA_DIR}`;
  const [, hosts = '', database = ''] =
    /^mongodb(?:\+srv)?:\/\/(?:[^@/]*@)?([^/?]*)(?:\/([^?]*))?/.exec(MONGODB_URI) ?? [];
  return `database ${database || 'sluice'} of MongoDB at ${hosts}`;
}
