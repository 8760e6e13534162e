/** The URLs of an edition, from any of them. */
export interface EditionUrls {
  /** Of the head as it was given: the newest one, or one by its name. */
  readonly head: URL;
  /** Of the newest head. */
  readonly newest: URL;
  /** What the references of heads are relative to. It ends with a slash. */
  readonly base: URL;
  /** Whether heads are files of a folder or a bucket, which has no changes beside them. */
  readonly isStatic: boolean;
  /** The name of the edition that the URL gives. null: the newest one. */
  readonly name: string | null;
}

/** `/orders/edition` and `/orders/edition/{name}` of a server, and the same with `.json` of a folder or a bucket. */
const HEAD = /^(.*\/)edition(?:\/([0-9a-f]{64}))?(\.json)?\/?$/;

/** null: it is not the URL of an edition of a resource. */
export function editionUrls(given: URL): EditionUrls | null {
  const [, path = '', name = null, json] = HEAD.exec(given.pathname) ?? [];
  const isStatic = json !== undefined;
  // What begins the path of a server is the name of a resource: `/edition` alone may be one.
  if (!/^https?:$/.test(given.protocol) || path === '' || (path === '/' && !isStatic)) return null;
  const base = new URL(path, given);
  const newest = new URL(`edition${isStatic ? '.json' : ''}`, base);
  const head = name === null ? newest : new URL(`edition/${name}${isStatic ? '.json' : ''}`, base);
  return { head, newest, base, isStatic, name };
}

/** The URL of an edition by its name, where others of the resource are at `urls`. */
export function urlOfEdition({ base, isStatic }: EditionUrls, name: string): URL {
  return new URL(`edition/${name}${isStatic ? '.json' : ''}`, base);
}
