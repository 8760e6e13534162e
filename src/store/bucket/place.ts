import { fileURLToPath } from 'node:url';
import { reasonOf } from '../../base/error-reason.ts';
import { secretOf, twiceGiven, type Environment } from '../../base/secret-file.ts';

/** What signs requests to an object store. `sessionToken`: of temporary credentials. */
export interface Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** A place in a bucket. */
export interface BucketPlace {
  readonly kind: 'bucket';
  readonly bucket: string;
  /** The beginning of all keys: empty, or with a slash at its end. */
  readonly prefix: string;
  /** The URL of the bucket itself, without a slash at its end. */
  readonly url: URL;
  readonly region: string;
  /** Reads the credentials, those of files as they are now. Throws an Error that shows none of them. */
  readonly credentials: () => Credentials;
}

/** Where the setting FILES puts files. */
export type FilesPlace = { readonly kind: 'folder'; readonly path: string } | BucketPlace;

const FORM = 's3://BUCKET/PREFIX?endpoint=URL&region=NAME, or file:///FOLDER';
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
/** Keys of these characters are the same in URLs, in signatures and in lists. */
const SEGMENT = /^(?!\.{1,2}$)[A-Za-z0-9._=-]+$/;
const REGION = /^[A-Za-z0-9-]{1,64}$/;
const PARAMETERS: ReadonlySet<string> = new Set(['endpoint', 'region']);
const DEFAULT_REGION = 'us-east-1';

/** Reads FILES and the credentials that it needs. null: FILES is not set. Each fault names its setting and no secret. */
export function readFilesPlace(given: Environment): { place: FilesPlace | null; faults: readonly string[] } {
  if (given.FILES === undefined) return { place: null, faults: [] };
  const url = URL.canParse(given.FILES) ? new URL(given.FILES) : null;
  if (url?.protocol === 's3:') return readBucket(url, given);
  if (url && given.FILES.startsWith('file:///')) return readFolder(url);
  return { place: null, faults: [`FILES must be ${FORM}`] };
}

function readFolder(url: URL): ReturnType<typeof readFilesPlace> {
  const isPlain = url.search === '' && url.hash === '' && url.pathname !== '/';
  return isPlain
    ? { place: { kind: 'folder', path: fileURLToPath(url) }, faults: [] }
    : { place: null, faults: ['FILES must name a folder by its whole path: file:///FOLDER'] };
}

function readBucket(url: URL, given: Environment): ReturnType<typeof readFilesPlace> {
  const { hostname: bucket, pathname, searchParams } = url;
  const segments = pathname.split('/').filter((segment) => segment !== '');
  const region = searchParams.get('region') ?? DEFAULT_REGION;
  const endpoint = searchParams.get('endpoint') ?? `https://s3.${region}.amazonaws.com`;
  const faults = [
    ...(url.username + url.password + url.port + url.hash === ''
      ? []
      : [`FILES must be ${FORM}; credentials belong in S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY`]),
    ...(BUCKET.test(bucket)
      ? []
      : ['FILES must name a bucket of 3 to 63 lower-case letters, digits, dots and hyphens']),
    ...(segments.every((segment) => SEGMENT.test(segment))
      ? []
      : ['FILES must have a prefix of letters, digits, and ".", "_", "=", "-" between slashes']),
    ...[...searchParams.keys()]
      .filter((name) => !PARAMETERS.has(name))
      .map((name) => `FILES has the parameter ${JSON.stringify(name)}; it may have endpoint and region`),
    ...(REGION.test(region) ? [] : ['FILES must have a region such as eu-central-1']),
    ...(isEndpoint(endpoint)
      ? []
      : ['FILES must have an endpoint such as https://s3.example.com, without a query']),
    ...credentialFaults(given),
  ];
  if (faults.length > 0) return { place: null, faults };
  const prefix = segments.map((segment) => `${segment}/`).join('');
  const place = { kind: 'bucket', bucket, prefix, region, url: bucketUrl(endpoint, bucket) } as const;
  return { place: { ...place, credentials: () => credentialsOf(given) }, faults: [] };
}

function isEndpoint(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && username + password + search + hash === '';
}

/** The bucket is a part of the path, which every store and every certificate allows, unless the endpoint's host names it. */
function bucketUrl(endpoint: string, bucket: string): URL {
  const url = new URL(endpoint);
  if (!url.hostname.startsWith(`${bucket}.`)) url.pathname = `${url.pathname.replace(/\/+$/, '')}/${bucket}`;
  return url;
}

const SECRETS = { accessKeyId: 'S3_ACCESS_KEY_ID', secretAccessKey: 'S3_SECRET_ACCESS_KEY' } as const;
const TOKEN = 'S3_SESSION_TOKEN';

function credentialFaults(given: Environment): readonly string[] {
  const faults: string[] = [];
  for (const name of [...Object.values(SECRETS), TOKEN]) {
    const file = `${name}_FILE`;
    const twice = twiceGiven(given, name);
    if (twice !== null) faults.push(twice);
    else
      try {
        if (secretOf(given, name) === undefined && name !== TOKEN)
          faults.push(`${name} is missing: FILES=s3://... needs it, or ${file}`);
      } catch (error) {
        faults.push(reasonOf(error));
      }
  }
  return faults;
}

function credentialsOf(given: Environment): Credentials {
  const { accessKeyId, secretAccessKey } = SECRETS;
  const sessionToken = secretOf(given, TOKEN);
  return {
    accessKeyId: secretOf(given, accessKeyId) ?? '',
    secretAccessKey: secretOf(given, secretAccessKey) ?? '',
    ...(sessionToken !== undefined && { sessionToken }),
  };
}
